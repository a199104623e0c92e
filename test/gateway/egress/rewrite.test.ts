import test from 'ava';
import fc from 'fast-check';
import type { Caller } from '../../../gateway/egress/callers.ts';
import { RequestHead } from '../../../gateway/egress/http/request-head.ts';
import type { Judged } from '../../../gateway/egress/judge.ts';
import { requestLine } from '../../../gateway/egress/judge.ts';
import { rewriteRoom, writeRequestHead } from '../../../gateway/egress/rewrite.ts';
import { createScope } from '../../../gateway/egress/scope.ts';
import { canonicalTarget, compile, decide } from '../../../policy/index.ts';
import { preparedCredential } from './prepared.ts';

const scope = createScope('https', { kind: 'name', name: 'a.example' }, 443);

const caller: Caller = {
  id: 'sb',
  info: { id: 'sb', labels: {} },
  policy: { name: 'p', current: null },
  tokenHash: null,
  pins: new Map(),
  isSelfTest: false,
  connections: 0,
  isAttached: true,
  standIns: new Map(),
};

function judgedFor(method: string, target: string): Judged {
  const canonical = canonicalTarget(target);
  if (!canonical.ok) throw new Error(`not canonical: ${target}`);
  const facts = { scheme: scope.scheme, destination: scope.destination, port: 443, method, target: canonical.value };
  const compiled = compile({
    version: 1,
    name: 'p',
    mode: 'enforce',
    allowPrivate: [],
    rules: [],
    credentials: [],
    tests: [],
  });
  const info = { name: 'p', digest: compiled.digest, generation: 1 };
  const generation = { compiled, info };
  return {
    caller,
    scope,
    facts,
    decision: decide(null, facts),
    generation,
    inject: [],
    requestLine: requestLine(facts),
  };
}

/** The head as it leaves for one that came in. */
function rewritten(text: string, secret: string | null = null): string {
  const head = new RequestHead();
  const buf = Buffer.from(text, 'latin1');
  if (head.parse(buf, 0, buf.length) <= 0) throw new Error(`not parsed: ${head.failure?.reason}`);
  const out = Buffer.alloc(8192);
  const credentials = secret === null ? [] : [preparedCredential(secret)];
  return out.toString('latin1', 0, writeRequestHead(out, head, judgedFor(head.method, head.target()), credentials));
}

test('writeRequestHead() sends the canonical target that was judged', (t) => {
  t.is(
    rewritten('GET /a/./b//%61?q=1 HTTP/1.1\r\nHost: a.example\r\n\r\n'),
    'GET /a/b/a?q=1 HTTP/1.1\r\nHost: a.example\r\n\r\n',
  );
});

test('writeRequestHead() sends the canonical Host once', (t) => {
  t.is(
    rewritten('GET / HTTP/1.1\r\nHOST: A.Example.:443\r\nA: b\r\n\r\n'),
    'GET / HTTP/1.1\r\nA: b\r\nhost: a.example\r\n\r\n',
  );
});

test('writeRequestHead() throws rather than write a head cut short', (t) => {
  const head = new RequestHead();
  const buf = Buffer.from(`GET /${'^'.repeat(1000)} HTTP/1.1\r\nHost: a.example\r\n\r\n`);
  head.parse(buf, 0, buf.length);
  const judged = judgedFor('GET', head.target());
  const room = rewriteRoom(head, judged, []);
  t.throws(() => writeRequestHead(Buffer.alloc(room - 1), head, judged, []), { instanceOf: RangeError });
  const out = Buffer.alloc(room);
  t.true(out.toString('latin1', 0, writeRequestHead(out, head, judged, [])).endsWith('\r\n\r\n'));
});

const dropped = [
  'Proxy-Authorization: Basic eDp5',
  'Proxy-Connection: keep-alive',
  'Connection: keep-alive',
  'Keep-Alive: 5',
  'TE: trailers',
  'Trailer: Host',
  'X-Forwarded-For: 1.2.3.4',
  'X_Forwarded_For: 1.2.3.4',
  'Forwarded: for=1.2.3.4',
  'X-HTTP-Method-Override: DELETE',
  'X-Original-URL: /admin',
  'X-Rewrite-URL: /admin',
  'X-Sallyport-Request-Id: x',
  'HTTP2-Settings: AAMAAABk',
];

for (const line of dropped) {
  test(`writeRequestHead() drops ${line.split(':')[0]}`, (t) => {
    t.is(
      rewritten(`GET / HTTP/1.1\r\nHost: a.example\r\nA: 1\r\n${line}\r\nB: 2\r\n\r\n`),
      'GET / HTTP/1.1\r\nHost: a.example\r\nA: 1\r\nB: 2\r\n\r\n',
    );
  });
}

test('writeRequestHead() strips what Connection names before it injects (F7)', (t) => {
  const text = 'GET / HTTP/1.1\r\nHost: a.example\r\nConnection: authorization, x-key\r\nX-Key: 1\r\n\r\n';
  t.is(
    rewritten(text, 's3cret-value'),
    'GET / HTTP/1.1\r\nHost: a.example\r\naccept-encoding: identity\r\nauthorization: Bearer s3cret-value\r\n\r\n',
  );
});

test('writeRequestHead() replaces every value in the slot and asks for bytes it can search', (t) => {
  const text =
    'GET / HTTP/1.1\r\nHost: a.example\r\nAuthorization: x\r\nAccept-Encoding: gzip\r\nauthorization: y\r\n\r\n';
  t.is(
    rewritten(text, 's3cret-value'),
    'GET / HTTP/1.1\r\nHost: a.example\r\naccept-encoding: identity\r\nauthorization: Bearer s3cret-value\r\n\r\n',
  );
});

test('writeRequestHead() gives a head that reads back as what was judged', (t) => {
  const name = fc
    .stringMatching(/^[A-Za-z][A-Za-z-]{0,12}$/)
    .filter((text) => !/^(host|content-length|transfer-encoding|upgrade|expect|connection)$/i.test(text));
  const value = fc.stringMatching(/^[ -~]{0,20}$/);
  const path = fc.stringMatching(/^\/[a-zA-Z0-9._~/-]{0,30}$/).filter((text) => canonicalTarget(text).ok);
  fc.assert(
    fc.property(path, fc.array(fc.tuple(name, value), { maxLength: 10 }), (target, lines) => {
      const out = Buffer.from(
        rewritten(
          `GET ${target} HTTP/1.1\r\nHost: a.example\r\n${lines.map(([n, v]) => `${n}: ${v}\r\n`).join('')}\r\n`,
        ),
        'latin1',
      );
      const head = new RequestHead();
      const end = head.parse(out, 0, out.length);
      const canonical = canonicalTarget(target);
      return end === out.length && canonical.ok && head.target() === canonical.value.path;
    }),
  );
  t.pass();
});
