/** BAD-INPUT rows F4–F9, F19, F20: bodies, what stands behind them, and how long they may take. */
import anyTest, { type TestFn } from 'ava';
import { header, statusOf } from '../../kit/http-message.ts';
import { chunk } from '../../kit/replies.ts';
import { type AllowedCase, expectRefused, request, testAllowed, tunnel, useStage } from './stage.ts';

const test = anyTest as TestFn;

const policy = `
version: 1
name: bodies
rules:
  - name: anything
    effect: allow
    hosts: [api.acme.test]
  - name: plain
    effect: allow
    scheme: http
    hosts: [plain.acme.test]
  - name: nothing-secret
    effect: deny
    hosts: ["**"]
    paths: ["/secret/**"]
    reason: Nobody reads the secrets.
credentials:
  - name: token
    secret: env:FRAMING_TOKEN
    bind: { hosts: [api.acme.test], paths: ["/bound/**"] }
    inject: { header: Authorization, format: "Bearer {secret}" }
    onClientCredential: replace
`;

const stage = useStage(test, () => ({
  policy,
  env: { FRAMING_TOKEN: 'framing-token-value-0123456789' },
  limits: { headMs: 1_000, idleMs: 1_500, stallMs: 1_500 },
  tls: { 'api.acme.test': {} },
  plain: { 'plain.acme.test': {} },
}));

const inApi = tunnel('api.acme.test:443');
const host = 'Host: api.acme.test';

const allowed: readonly AllowedCase[] = [
  {
    title: 'F9 a GET with a body',
    via: inApi,
    send: `${request('GET /f9 HTTP/1.1', host, 'Content-Length: 4')}body`,
    upstream: 'api.acme.test',
    line: 'GET /f9 HTTP/1.1',
    headers: { 'content-length': '4', 'transfer-encoding': null },
  },
  {
    title: 'F9 a DELETE with a chunked body',
    via: inApi,
    send: `${request('DELETE /f9 HTTP/1.1', host, 'transfer-encoding: CHUNKED')}4\r\nbody\r\n0\r\n\r\n`,
    upstream: 'api.acme.test',
    line: 'DELETE /f9 HTTP/1.1',
    headers: { 'content-length': null, 'transfer-encoding': 'chunked' },
  },
  {
    title: 'F7 an injected slot named by Connection, filled after the strip,',
    via: inApi,
    send: request(
      'GET /bound/x HTTP/1.1',
      host,
      'Connection: keep-alive, Authorization, x-api-key',
      'Authorization: mine',
      'X-Api-Key: k',
      'X-Kept: 1',
    ),
    upstream: 'api.acme.test',
    line: 'GET /bound/x HTTP/1.1',
    headers: {
      authorization: 'Bearer framing-token-value-0123456789',
      'x-api-key': null,
      'x-kept': '1',
      connection: null,
    },
  },
  {
    title: 'F7 Host, Content-Length named by Connection, which stay,',
    via: inApi,
    send: `${request('POST /f7 HTTP/1.1', host, 'Connection: host, content-length, transfer-encoding', 'Content-Length: 4')}body`,
    upstream: 'api.acme.test',
    line: 'POST /f7 HTTP/1.1',
    headers: { host: 'api.acme.test', 'content-length': '4' },
  },
  {
    title: 'F19 a gzip body, which no rule of this version can name,',
    via: inApi,
    send: `${request('POST /f19 HTTP/1.1', host, 'Content-Encoding: gzip', 'Content-Length: 4')}\x1f\x8b\x08\x00`,
    upstream: 'api.acme.test',
    line: 'POST /f19 HTTP/1.1',
    headers: { 'content-encoding': 'gzip' },
  },
];
testAllowed(test, stage, allowed);

/** title, bytes behind a chunked head, code or null when only the cut counts. */
const bodies: readonly [title: string, body: string | Buffer, code: string][] = [
  ['F4 a negative chunk size', '-1\r\nx\r\n0\r\n\r\n', 'chunk_size'],
  ['F4 a chunk size with 0x', '0x1\r\nx\r\n0\r\n\r\n', 'chunk_size'],
  ['F4 a chunk size with a sign', '+1\r\nx\r\n0\r\n\r\n', 'chunk_size'],
  ['F4 a chunk size of 17 digits', `${'0'.repeat(16)}1\r\nx\r\n0\r\n\r\n`, 'chunk_size'],
  ['F4 a huge chunk size', 'ffffffffffffffff\r\n', 'chunk_size'],
  ['F4 an empty chunk size', '\r\nx\r\n0\r\n\r\n', 'chunk_size'],
  ['F4 an endless chunk extension', `1;${'a'.repeat(10_000)}`, 'chunk_extension'],
  ['F4 a chunk line that ends in LF', '1\nx\r\n0\r\n\r\n', 'chunk_line'],
  ['F4 a chunk extension with a bare CR', '1;a\rb\r\nx\r\n0\r\n\r\n', 'chunk_line'],
  ['F4 chunk data that is too long', '1\r\nxy\r\n0\r\n\r\n', 'chunk_data'],
  [
    'F4 a million chunks of one byte',
    Buffer.concat(Array.from({ length: 400_000 }, () => Buffer.from('1;aaaaaa\r\nx\r\n'))),
    'chunk_overhead',
  ],
];

for (const [title, body] of bodies) {
  test.serial(`${title} ends the request before the upstream has a whole one`, async (t) => {
    const here = stage();
    here.clear();
    const mark = await here.gateway.audit.mark();
    const connection = await here.open(t, inApi);
    connection.write(request('POST /f4 HTTP/1.1', host, 'Transfer-Encoding: chunked'));
    connection.write(body);
    const answer = await connection.readResponse('POST');
    t.true(answer.status === 400 || answer.status === 413, `${answer.status} ${answer.body.toString()}`);
    await connection.readToClose();
    t.is(here.upstream('api.acme.test').requests.length, 0);
    const record = await here.gateway.audit.find((line) => line.request?.path === '/f4', mark);
    t.is(record.code, (JSON.parse(answer.body.toString()) as { error: { code: string } }).error.code);
    t.not(record.verdict, 'allow');
  });
}

test.serial('F5 trailers are dropped, whatever they name', async (t) => {
  const here = stage();
  here.clear();
  const connection = await here.open(t, inApi);
  const trailers = 'Host: evil.test\r\nAuthorization: x\r\nContent-Length: 5\r\nX-Harmless: y\r\n';
  connection.write(
    `${request('POST /f5 HTTP/1.1', host, 'Transfer-Encoding: chunked', 'Trailer: Host')}4;ext=1\r\nbody\r\n0\r\n${trailers}\r\n`,
  );
  t.is((await connection.readResponse('POST')).status, 200);
  const [seen] = here.upstream('api.acme.test').requests;
  t.is(seen?.body.toString(), 'body');
  t.true(seen?.rawBody.toString().endsWith('0\r\n\r\n'));
  t.is(header(seen?.headers ?? [], 'trailer'), undefined);
});

test.serial('F6 of two requests in one write the second is judged alone', async (t) => {
  const here = stage();
  here.clear();
  const connection = await here.open(t, inApi);
  connection.write(
    `${request('GET /one HTTP/1.1', host)}${request('GET /secret/two HTTP/1.1', host)}${request('GET /three HTTP/1.1', host)}`,
  );
  t.is((await connection.readResponse()).status, 200);
  t.is((await connection.readResponse()).status, 403);
  t.is((await connection.readResponse()).status, 200);
  t.deepEqual(
    here.upstream('api.acme.test').requests.map((one) => one.target),
    ['/one', '/three'],
  );
});

test.serial('F6 a request hidden in the body of a refused one is never read as a request', async (t) => {
  const here = stage();
  here.clear();
  const hidden = request('GET /hidden HTTP/1.1', host);
  const connection = await here.open(t, inApi);
  connection.write(`${request('POST /secret/x HTTP/1.1', host, `Content-Length: ${hidden.length}`)}${hidden}`);
  await expectRefused(t, here, await connection.readResponse('POST'), {
    status: 403,
    code: 'policy_denied',
    rule: 'nothing-secret',
  });
  connection.write(request('GET /after HTTP/1.1', host));
  await connection.readResponse().catch(() => null);
  t.false(here.upstream('api.acme.test').requests.some((one) => one.target === '/hidden'));
});

test.serial('F8 Expect on a denied request gets the final answer before its body', async (t) => {
  const here = stage();
  here.clear();
  const connection = await here.open(t, inApi);
  connection.write(request('POST /secret/x HTTP/1.1', host, 'Expect: 100-continue', 'Content-Length: 100000'));
  const head = await connection.readHead();
  t.is(statusOf(head), 403);
  t.is(here.receivedBytes, 0);
});

test.serial('F8 Expect on an allowed request is answered so that the body comes', async (t) => {
  const here = stage();
  here.clear();
  const connection = await here.open(t, inApi);
  connection.write(request('POST /f8 HTTP/1.1', host, 'Expect: 100-continue', 'Content-Length: 4'));
  t.is(statusOf(await connection.readHead()), 100);
  connection.write('body');
  t.is((await connection.readResponse('POST')).status, 200);
  t.is(here.upstream('api.acme.test').requests[0]?.body.toString(), 'body');
});

test.serial('F9 what follows a GET without body is the next request', async (t) => {
  const here = stage();
  here.clear();
  const connection = await here.open(t, inApi);
  connection.write(`${request('GET /a HTTP/1.1', host)}${request('GET /b HTTP/1.1', host)}`);
  await connection.readResponse();
  await connection.readResponse();
  t.deepEqual(
    here.upstream('api.acme.test').requests.map((one) => [one.target, one.rawBody.length]),
    [
      ['/a', 0],
      ['/b', 0],
    ],
  );
});

test.serial('F20 a tunnel nobody uses is closed', async (t) => {
  const here = stage();
  const connection = await here.open(t, inApi);
  t.is((await connection.readToClose()).length, 0);
});

test.serial('F20 a body that stops coming is ended', async (t) => {
  const here = stage();
  here.clear();
  const connection = await here.open(t, inApi);
  connection.write(`${request('POST /stall HTTP/1.1', host, 'Content-Length: 100')}part`);
  await connection.readToClose();
  t.is(here.upstream('api.acme.test').requests.length, 0);
});

test.serial('F4 many chunks within the bounds arrive whole', async (t) => {
  const here = stage();
  here.clear();
  const connection = await here.open(t, inApi);
  const parts = Buffer.concat(Array.from({ length: 2000 }, () => chunk('ten bytes.')));
  connection.write(request('POST /f4 HTTP/1.1', host, 'Transfer-Encoding: chunked'));
  connection.write(Buffer.concat([parts, Buffer.from('0\r\n\r\n')]));
  t.is((await connection.readResponse('POST')).status, 200);
  t.is(here.upstream('api.acme.test').requests[0]?.body.length, 20_000);
});
