/** Connections that end, stall or lie in the middle: everyone gets a whole answer or can tell that it is none. */
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import anyTest, { type TestFn } from 'ava';
import { eventually } from '../../kit/gateway.ts';
import { rawReply, resettable, respond } from '../../kit/replies.ts';
import { proxy, proxyRequest, request, tunnel, useStage } from '../bad-input/stage.ts';

const test = anyTest as TestFn;

const policy = `
version: 1
name: connections
rules:
  - { name: inside, effect: allow, hosts: [api.acme.test] }
  - { name: plain, effect: allow, scheme: http, hosts: [plain.acme.test] }
credentials:
  - name: token
    secret: env:CONNECTIONS_TOKEN
    bind: { hosts: [api.acme.test], paths: ["/bound/**"] }
    inject: { header: Authorization, format: "Bearer {secret}" }
`;

const secret = 'connections-token-0123456789';
const stage = useStage(test, () => ({
  policy,
  env: { CONNECTIONS_TOKEN: secret },
  limits: { lingerMs: 1 },
  tls: { 'api.acme.test': {} },
  plain: { 'plain.acme.test': {} },
}));
const host = 'Host: api.acme.test';
const inApi = tunnel('api.acme.test:443');
const plainHost = 'Host: plain.acme.test';

/** Longer than lingerMs and one sweep of the deadlines. */
const sweptMs = 700;

test.serial('Session answers a client that closes its side behind a body while the upstream is dialled', async (t) => {
  const here = stage();
  const connection = await here.open(t, proxy);
  const head = proxyRequest('POST http://plain.acme.test/half HTTP/1.1', plainHost, 'Content-Length: 4');
  connection.socket.end(Buffer.from(here.expand(`${head}body`)));
  const answer = await connection.readResponse('POST');
  t.is(answer.status, 200, answer.body.toString());
  t.is((await connection.readToClose()).length, 0);
});

test.serial('Session answers every pipelined request of a client that has closed its side', async (t) => {
  const here = stage();
  const connection = await here.open(t, proxy);
  const one = proxyRequest('GET http://plain.acme.test/pipelined HTTP/1.1', plainHost);
  connection.socket.end(Buffer.from(here.expand(one + one + one)));
  for (let i = 0; i < 3; i++) t.is((await connection.readResponse()).status, 200);
  t.is((await connection.readToClose()).length, 0);
});

test.serial('Session cuts a client that closes its side in the middle of a body', async (t) => {
  const here = stage();
  const mark = await here.gateway.audit.mark();
  const connection = await here.open(t, proxy);
  const head = proxyRequest('POST http://plain.acme.test/cut-body HTTP/1.1', plainHost, 'Content-Length: 400');
  connection.socket.end(Buffer.from(here.expand(`${head}body`)));
  t.is((await connection.readToClose()).length, 0);
  const record = await here.gateway.audit.find((line) => line.request?.path === '/cut-body', mark);
  t.is(record.code, 'client_aborted');
});

for (const [title, isEnded] of [
  ['slow', false],
  ['slow and half-closed', true],
] as const) {
  test.serial(`Session gives a ${title} client the end of its answer before it gives up on it`, async (t) => {
    const here = stage();
    const size = 16 * 1024 * 1024;
    const upstream = here.upstream('plain.acme.test');
    // The gateway does not keep a connection with this line, so its end tells when the gateway has the last byte.
    upstream.route('/big', respond({ headers: { connection: 'close' }, body: Buffer.alloc(size, 97) }));
    const client = connect(here.gateway.port, '127.0.0.1');
    t.teardown(() => client.destroy());
    client.on('error', () => {});
    const head = proxyRequest('GET http://plain.acme.test/big HTTP/1.1', plainHost, 'Connection: close');
    if (isEnded) client.end(here.expand(head));
    else client.write(here.expand(head));
    await new Promise((resolve) => client.once('readable', resolve));
    const open = upstream.openConnections;
    let received = await readWhile(client, () => upstream.openConnections === open);
    await pause(sweptMs);
    client.on('data', (chunk: Buffer) => {
      received += chunk.length;
    });
    client.resume();
    await new Promise((resolve) => client.once('close', resolve));
    t.true(received > size, `${received} of ${size}`);
  });
}

test.serial(
  'Session reads no further requests while nobody reads its answers, and goes on when somebody does',
  async (t) => {
    const here = stage();
    const count = 60_000;
    const client = connect(here.gateway.port, '127.0.0.1');
    t.teardown(() => client.destroy());
    const before = here.gateway.gateway.status().requests;
    client.pause();
    client.write('GET http://plain.acme.test/ HTTP/1.1\r\nHost: plain.acme.test\r\n\r\n'.repeat(count));
    let last = -1;
    while (last !== here.gateway.gateway.status().requests) {
      last = here.gateway.gateway.status().requests;
      await pause(sweptMs);
    }
    const taken = last - before;
    t.true(taken > 0 && taken < count, `${taken} answered into memory`);
    let text = '';
    let answered = 0;
    client.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      answered += text.split('HTTP/1.1 407 ').length - 1;
      text = text.slice(-12);
    });
    client.resume();
    await eventually('all answers', () => answered === count);
    t.is(here.gateway.gateway.status().requests - before, count);
  },
);

for (const [title, via] of [
  ['plain', proxy],
  ['TLS', inApi],
] as const) {
  test.serial(`Exchange cuts a body that ends with its connection so that a ${title} client can tell`, async (t) => {
    const here = stage();
    const answer = resettable('HTTP/1.1 200 OK\r\n\r\npart');
    const name = via === proxy ? 'plain.acme.test' : 'api.acme.test';
    here.upstream(name).route('/until-close', answer.reply);
    const connection = await here.open(t, via);
    connection.write(
      via === proxy
        ? here.expand(proxyRequest('GET http://plain.acme.test/until-close HTTP/1.1', plainHost))
        : request('GET /until-close HTTP/1.1', host),
    );
    await connection.readUntil('part');
    answer.reset();
    await connection.readToClose();
    await eventually('an error', () => connection.error !== null || connection.socket.destroyed);
    t.is(connection.error?.code, 'ECONNRESET');
  });
}

test.serial('Session ends a connection whose body was refused although the client keeps it open', async (t) => {
  const here = stage();
  const before = here.gateway.gateway.status().connections;
  const client = connect({ port: here.gateway.port, host: '127.0.0.1', allowHalfOpen: true });
  t.teardown(() => client.destroy());
  client.on('error', () => {}).resume();
  const head = proxyRequest('POST http://plain.acme.test/ HTTP/1.1', plainHost, 'Transfer-Encoding: chunked');
  client.write(here.expand(`${head}zz\r\n`));
  await new Promise((resolve) => client.once('end', resolve));
  await eventually('the connection is gone', () => here.gateway.gateway.status().connections <= before);
  t.pass();
});

test.serial(
  'C4 an injected value in an interim answer is masked, and what ends at the gateway ends there',
  async (t) => {
    const here = stage();
    const interim = `HTTP/1.1 103 Early Hints\r\nX-Echo: Bearer ${secret}\r\nAlt-Svc: h3\r\nLink: </a>\r\n\r\n`;
    const final = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
    here.upstream('api.acme.test').route('/bound/hints', rawReply(interim + final));
    const connection = await here.open(t, inApi);
    connection.write(request('GET /bound/hints HTTP/1.1', host));
    const text = await connection.readUntil('ok');
    t.true(text.includes('103 Early Hints') && text.includes('Link: </a>'));
    t.false(text.includes(secret));
    t.false(text.toLowerCase().includes('alt-svc'));
  },
);

test.serial(
  'ResponseRelay answers in its own version and trusts no chunked HTTP/1.0 upstream with another request',
  async (t) => {
    const here = stage();
    here.clear();
    const upstream = here.upstream('api.acme.test');
    const headers = 'Connection: keep-alive\r\nTransfer-Encoding: chunked';
    upstream.route('/old', rawReply(`HTTP/1.0 200 OK\r\n${headers}\r\n\r\n2\r\nok\r\n0\r\n\r\n`));
    const connection = await here.open(t, inApi);
    const answer = await connection.ask(request('GET /old HTTP/1.1', host));
    t.regex(answer.rawHead, /^HTTP\/1\.1 200 /);
    t.is(answer.body.toString(), 'ok');
    t.is((await connection.ask(request('GET /new HTTP/1.1', host))).status, 200);
    t.not(upstream.requests[0]?.connection, upstream.requests[1]?.connection);
  },
);

test.serial('ResponseRelay uses no connection again whose 204 announced a body', async (t) => {
  const here = stage();
  here.clear();
  const upstream = here.upstream('api.acme.test');
  upstream.route('/empty', rawReply('HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n'));
  const connection = await here.open(t, inApi);
  t.is((await connection.ask(request('GET /empty HTTP/1.1', host))).status, 204);
  t.is((await connection.ask(request('GET /new HTTP/1.1', host))).status, 200);
  t.not(upstream.requests[0]?.connection, upstream.requests[1]?.connection);
});

/** Takes small pieces while `isGoing`; returns how many bytes came. */
async function readWhile(socket: Socket, isGoing: () => boolean): Promise<number> {
  let received = 0;
  while (isGoing()) {
    const piece: Buffer | null = socket.read(16 * 1024) ?? socket.read();
    received += piece?.length ?? 0;
    await pause(0);
  }
  return received;
}
