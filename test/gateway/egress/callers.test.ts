/** Callers that leave, are too many, or are taken away: what they had open ends, and what they asked is recorded. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { connect, createSecureContext } from 'node:tls';
import test from 'ava';
import { Callers, SELFTEST_CALLER } from '../../../gateway/egress/index.ts';
import { createAuthority } from '../../kit/certificates.ts';
import { eventually, withGateway } from '../../kit/gateway.ts';
import { askTunnel, connectRaw } from '../../kit/raw-client.ts';
import { startUpstream } from '../../kit/upstream.ts';
import { proxy, request, startStage, tunnel } from '../bad-input/stage.ts';

const rules = `
rules:
  - { name: inside, effect: allow, hosts: [api.acme.test] }
  - { name: plain, effect: allow, scheme: http, hosts: [plain.acme.test] }
`;
const policy = `version: 1\nname: callers\n${rules}`;
const plain = { 'plain.acme.test': {} };
const plainRequest = request('GET http://plain.acme.test/x HTTP/1.1', 'Host: plain.acme.test');

test('detach() cuts connections that came through the socket of the caller, and ends', async (t) => {
  const here = await startStage({ policy, plain });
  t.teardown(() => here.close());
  const { gateway } = here.gateway;
  const { id, socketPath } = await gateway.attach({ policy: 'callers', labels: {}, actor: 'test', socket: true });
  const connection = await connectRaw({ path: socketPath ?? '' });
  t.teardown(() => connection.close());
  t.is((await connection.ask(plainRequest)).status, 200);
  t.true(await gateway.detach(id, 'test'));
  t.is((await connection.readToClose()).length, 0);
  await t.throwsAsync(connectRaw({ path: socketPath ?? '' }));
});

test('close() does not wait for a client that stops in the middle of its TLS handshake', async (t) => {
  const authority = createAuthority();
  const here = await startStage({ policy, tls: { 'api.acme.test': {} }, limits: { drainMs: 100 } });
  t.teardown(() => here.close());
  const connection = await here.gateway.connect();
  t.teardown(() => connection.close());
  t.is((await askTunnel(connection, 'api.acme.test:443', here.gateway.authorization)).status, 200);
  // A whole ClientHello, and nothing after it.
  connection.write(await clientHello('api.acme.test', authority.certPem));
  await connection.readUntil('\x16\x03');
  await here.gateway.gateway.close();
  t.pass();
});

test('a caller with a proxy credential has no more connections than the bound, and gets one back for each it closes', async (t) => {
  const here = await startStage({ policy, plain, limits: { connectionsPerCaller: 2 } });
  t.teardown(() => here.close());
  const send = plainRequest.replace('\r\n\r\n', `\r\n${here.gateway.authorization}\r\n`);
  const [first, second, third] = [await here.open(t, proxy), await here.open(t, proxy), await here.open(t, proxy)];
  t.is((await first.ask(send)).status, 200);
  t.is((await second.ask(send)).status, 200);
  const refused = await third.ask(send);
  t.is(refused.status, 503);
  t.regex(refused.body.toString(), /too_many_connections/);
  t.is((await third.ask(send)).status, 503);
  t.is((await first.ask(send)).status, 200);
  first.close();
  await eventually('a place', async () => (await third.ask(send)).status === 200);
  t.is((await second.ask(send)).status, 200);
});

test('selftest() run twice at once passes twice', async (t) => {
  const here = await startStage({ policy, plain });
  t.teardown(() => here.close());
  const { gateway } = here.gateway;
  const reports = await Promise.all([gateway.selftest(), gateway.selftest(), gateway.reload('test')]);
  t.true(reports.every((report) => report.ok));
  t.is(gateway.status().refusing, null);
});

test("Callers.add() gives nobody the self-test's id", (t) => {
  const caller = {
    id: SELFTEST_CALLER,
    info: { id: SELFTEST_CALLER, labels: {} },
    policy: { name: 'p', current: null },
    tokenHash: null,
    pins: new Map(),
    isSelfTest: false,
    connections: 0,
    isAttached: false,
    standIns: new Map(),
  };
  t.throws(() => new Callers().add(caller), { code: 'GATEWAY_CALLER_INVALID' });
  t.notThrows(() => new Callers().add({ ...caller, isSelfTest: true }));
});

test('a tunnel that ends within the first head of a request leaves a record', async (t) => {
  const here = await startStage({ policy, tls: { 'api.acme.test': {} } });
  t.teardown(() => here.close());
  const mark = await here.gateway.audit.mark();
  const connection = await here.open(t, tunnel('api.acme.test:443'));
  connection.write('GET /half HTTP/1.1\r\nHost: api.ac');
  connection.socket.end();
  const record = await here.gateway.audit.find((line) => line.code === 'tunnel_unused', mark);
  t.is(record.request?.host, 'api.acme.test');
});

test('a credential taken away while its upstream was dialled is not sent', async (t) => {
  const leaf = createAuthority();
  const issued = leaf.issue({ names: ['slow.acme.test'] });
  let proceed: () => void = () => {};
  const asked = new Promise<void>((resolve) => {
    proceed = resolve;
  });
  let isAsked = false;
  const upstream = await startUpstream({
    tls: {
      cert: issued.certPem,
      key: issued.keyPem,
      SNICallback: (_name, done) => {
        isAsked = true;
        void asked.then(() => done(null, createSecureContext({ cert: issued.certPem, key: issued.keyPem })));
      },
    },
  });
  t.teardown(() => upstream.close());
  const bare = `version: 1\nname: slow\nrules:\n  - { name: a, effect: allow, hosts: [slow.acme.test] }\n`;
  const credential = `credentials:
  - name: token
    secret: env:CALLERS_TOKEN
    bind: { hosts: [slow.acme.test] }
    inject: { header: Authorization, format: "Bearer {secret}" }
`;
  const gateway = await withGateway(t, {
    policy: bare + credential,
    env: { CALLERS_TOKEN: 'callers-token-0123456789' },
    upstreams: [{ name: 'slow.acme.test', port: upstream.port, ca: leaf.certPem }],
  });
  const connection = await gateway.connect();
  await askTunnel(connection, 'slow.acme.test:443', gateway.authorization);
  const inner = await connection.startTls({ servername: 'slow.acme.test', ca: gateway.ca });
  t.teardown(() => inner.close());
  inner.write(request('GET /x HTTP/1.1', 'Host: slow.acme.test'));
  await eventually('the dial', () => isAsked);
  t.true((await gateway.reload(bare)).ok);
  proceed();
  t.is((await inner.readToClose()).length, 0);
  const record = await gateway.audit.find((line) => line.request?.path === '/x');
  t.is(record.code, 'policy_revoked');
  t.is(upstream.requests.length, 0);
});

/** The first flight of a real client. */
async function clientHello(servername: string, ca: string): Promise<Buffer> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const client = connect({ port: typeof address === 'object' ? (address?.port ?? 0) : 0, servername, ca });
  client.on('error', () => {});
  const [socket] = await once(server, 'connection');
  const [bytes] = await once(socket, 'data');
  client.destroy();
  server.close();
  return bytes;
}
