/** BAD-INPUT row F18: answers of an upstream that two parsers would read differently. */
import anyTest, { type TestFn } from 'ava';
import { head, rawReply, resettable } from '../../kit/replies.ts';
import { request, tunnel, useStage } from './stage.ts';

const test = anyTest as TestFn;

const policy = `
version: 1
name: responses
rules:
  - name: anything
    effect: allow
    hosts: [api.acme.test]
`;

const stage = useStage(test, () => ({ policy, tls: { 'api.acme.test': {} }, limits: { responseHeadMs: 1_500 } }));
const host = 'Host: api.acme.test';
const ok = 'HTTP/1.1 200 OK\r\n';

const answers: readonly [title: string, bytes: string][] = [
  ['two different Content-Length', `${ok}Content-Length: 4\r\nContent-Length: 5\r\n\r\nbody1`],
  ['two equal Content-Length', `${ok}Content-Length: 4\r\nContent-Length: 4\r\n\r\nbody`],
  ['Content-Length and Transfer-Encoding', `${ok}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['a Content-Length with a sign', `${ok}Content-Length: +4\r\n\r\nbody`],
  ['a Content-Length list', `${ok}Content-Length: 4, 4\r\n\r\nbody`],
  ['Transfer-Encoding gzip, chunked', `${ok}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
  ['Transfer-Encoding identity', `${ok}Transfer-Encoding: identity\r\n\r\nbody`],
  ['a bare LF in a header', `${ok}X-A: b\nX-B: c\r\nContent-Length: 0\r\n\r\n`],
  ['a bare CR in a header', `${ok}X-A: b\rX-B: c\r\nContent-Length: 0\r\n\r\n`],
  ['a NUL in a header', `${ok}X-A: b\0c\r\nContent-Length: 0\r\n\r\n`],
  ['a folded header', `${ok}X-A: b\r\n c\r\nContent-Length: 0\r\n\r\n`],
  ['a space before the colon', `${ok}Content-Length : 0\r\n\r\n`],
  ['a header without a name', `${ok}: x\r\nContent-Length: 0\r\n\r\n`],
  ['a status line without a number', 'HTTP/1.1 OK\r\nContent-Length: 0\r\n\r\n'],
  ['a status of four digits', 'HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n'],
  ['HTTP/2.0', 'HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n'],
  ['no HTTP at all', 'SSH-2.0-OpenSSH_9.2\r\n'],
  ['a head of 200 KiB', `${ok}X-Big: ${'a'.repeat(200 * 1024)}\r\nContent-Length: 0\r\n\r\n`],
  ['2000 headers', `${ok}${'X-A: b\r\n'.repeat(2000)}Content-Length: 0\r\n\r\n`],
  ['an unsolicited 101', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'],
  [
    'a hundred interim answers',
    `${'HTTP/1.1 103 Early Hints\r\nX-A: b\r\n\r\n'.repeat(1000)}${ok}Content-Length: 0\r\n\r\n`,
  ],
];

for (const [title, bytes] of answers) {
  test.serial(`F18 an answer with ${title} becomes 502`, async (t) => {
    const here = stage();
    here.clear();
    const mark = await here.gateway.audit.mark();
    here.upstream('api.acme.test').route('/f18', rawReply(bytes));
    const connection = await here.open(t, tunnel('api.acme.test:443'));
    const answer = await connection.ask(request('GET /f18 HTTP/1.1', host));
    t.is(answer.status, 502, answer.body.toString());
    const record = await here.gateway.audit.find((line) => line.request?.path === '/f18', mark);
    t.is(record.verdict, 'error');
    t.is(record.response?.status ?? 502, 502);
    // What the upstream sent behind its answer must not become an answer to the next request.
    const next = await connection.ask(request('GET /next HTTP/1.1', host)).catch(() => null);
    t.true(next === null || next.body.toString().includes('/next'));
  });
}

test.serial('F18 bytes behind a complete answer are not an answer to the next request', async (t) => {
  const here = stage();
  here.clear();
  const poison = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison';
  here.upstream('api.acme.test').route('/split', rawReply(`${ok}Content-Length: 2\r\n\r\nok${poison}`));
  const connection = await here.open(t, tunnel('api.acme.test:443'));
  t.is((await connection.ask(request('GET /split HTTP/1.1', host))).body.toString(), 'ok');
  const next = await connection.ask(request('GET /next HTTP/1.1', host)).catch(() => null);
  t.false(next?.body.toString().includes('poison') ?? false);
});

test.serial('F18 an answer that is cut off is cut off for the client too, never completed', async (t) => {
  const here = stage();
  here.clear();
  const answer = resettable(`${ok}Content-Length: 100\r\n\r\npart`);
  here.upstream('api.acme.test').route('/cut', answer.reply);
  const connection = await here.open(t, tunnel('api.acme.test:443'));
  connection.write(request('GET /cut HTTP/1.1', host));
  await connection.readUntil('part');
  answer.reset();
  t.is((await connection.readToClose()).length, 0);
  const record = await here.gateway.audit.find((line) => line.request?.path === '/cut');
  t.is(record.response?.bytes, 4);
});

test.serial('F18 a chunked answer that is cut off never gets a last chunk', async (t) => {
  const here = stage();
  here.clear();
  const answer = resettable(`${ok}Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n`);
  here.upstream('api.acme.test').route('/cut-chunks', answer.reply);
  const connection = await here.open(t, tunnel('api.acme.test:443'));
  connection.write(request('GET /cut-chunks HTTP/1.1', host));
  await connection.readUntil('part');
  answer.reset();
  t.false((await connection.readToClose()).toString().includes('0\r\n\r\n'));
});

test.serial('F18 an upstream that never answers is given up with 504', async (t) => {
  const here = stage();
  here.clear();
  here.upstream('api.acme.test').route('/never', (_request, wire) => wire.closed);
  const connection = await here.open(t, tunnel('api.acme.test:443'));
  t.is((await connection.ask(request('GET /never HTTP/1.1', host))).status, 504);
});

test.serial('F18 hop-by-hop headers and Alt-Svc of an answer stay behind', async (t) => {
  const here = stage();
  here.clear();
  const headers = {
    connection: 'x-hop',
    'x-hop': '1',
    'keep-alive': 'timeout=5',
    'alt-svc': 'h3=":443"',
    'x-kept': '1',
    'content-length': '0',
  };
  here.upstream('api.acme.test').route('/hop', rawReply(head(200, headers)));
  const connection = await here.open(t, tunnel('api.acme.test:443'));
  const answer = await connection.ask(request('GET /hop HTTP/1.1', host));
  const names = answer.headers.map(([name]) => name.toLowerCase());
  t.true(names.includes('x-kept'));
  for (const name of ['alt-svc', 'keep-alive', 'x-hop']) t.false(names.includes(name), name);
});
