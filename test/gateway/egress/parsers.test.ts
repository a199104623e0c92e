/** Properties of what reads an upstream's head, a proxy's target and a caller's credential, whatever they are given. */
import test from 'ava';
import fc from 'fast-check';
import { Callers, hashToken } from '../../../gateway/egress/callers.ts';
import { FAILED, INCOMPLETE } from '../../../gateway/egress/http/header-block.ts';
import { ResponseHead } from '../../../gateway/egress/http/response-head.ts';
import { cutHopLines } from '../../../gateway/egress/response-lines.ts';
import { parseAbsolute } from '../../../gateway/egress/scope.ts';

const runs = { numRuns: 1_000 };

/** Heads made of good lines, lines that end at the gateway, and pieces of attacks. */
const responseText = fc
  .tuple(
    fc.constantFrom('HTTP/1.1 200 OK\r\n', 'HTTP/1.0 404 Not Found\r\n', 'HTTP/1.1 304\r\n', 'HTTP/2 200 OK\r\n', ''),
    fc.array(
      fc.oneof(
        fc.constantFrom('Content-Length: 5\r\n', 'Transfer-Encoding: chunked\r\n', 'Connection: close, X-A\r\n'),
        fc.constantFrom(
          'Connection: keep-alive\r\n',
          'Keep-Alive: 5\r\n',
          'X-A: 1\r\n',
          'X-B: 2\r\n',
          'Alt-Svc: h3\r\n',
        ),
        fc.constantFrom(
          'Proxy-Authenticate: x\r\n',
          'Upgrade: h2c\r\n',
          'X : y\r\n',
          ' folded\r\n',
          'A: b\rC\r\n',
          '\n',
        ),
        fc.string({ unit: 'binary', maxLength: 12 }),
      ),
      { maxLength: 8 },
    ),
    fc.constantFrom('\r\n', '\n\n', ''),
    fc.string({ unit: 'binary', maxLength: 8 }),
  )
  .map(([line, lines, end, body]) => Buffer.from([line, ...lines, end, body].join(''), 'latin1'));

test('ResponseHead.parse() never throws, reads nothing beyond its end, and gives the same for every beginning', (t) => {
  const anything = fc.uint8Array({ maxLength: 120 }).map((bytes) => Buffer.from(bytes));
  fc.assert(
    fc.property(fc.oneof(responseText, anything), (bytes) => {
      const head = new ResponseHead();
      const end = head.parse(bytes, 0, bytes.length);
      if (end === FAILED) return head.failure !== '';
      if (end === INCOMPLETE) return true;
      const isWithin = end <= bytes.length && (head.headers.valueEnd[head.headers.count - 1] ?? 0) <= end;
      const isFramed = ['none', 'length', 'chunked', 'close'].includes(head.framing('GET'));
      const isOnlyWhole = new ResponseHead().parse(bytes, 0, end) === end;
      return isWithin && isFramed && isOnlyWhole && new ResponseHead().parse(bytes, 0, end - 1) === INCOMPLETE;
    }),
    runs,
  );
  t.pass();
});

test('cutHopLines() leaves a head that reads the same and has nothing left to cut', (t) => {
  let read = 0;
  fc.assert(
    fc.property(responseText, (bytes) => {
      const head = new ResponseHead();
      const end = head.parse(bytes, 0, bytes.length);
      if (end <= 0) return true;
      read += 1;
      const status = head.status;
      const framing = head.framing('GET');
      const body = bytes.toString('latin1', end);
      const start = cutHopLines(bytes, head, false);
      const again = new ResponseHead();
      const isWhole = again.parse(bytes, start, bytes.length) === end;
      return (
        isWhole &&
        !again.hasHop &&
        again.status === status &&
        again.framing('GET') === framing &&
        bytes.toString('latin1', end) === body &&
        cutHopLines(bytes, again, false) === start
      );
    }),
    runs,
  );
  t.true(read > 5);
});

test('parseAbsolute() gives a scope or a refusal for any target, and the same scope for what it names', (t) => {
  const target = fc
    .tuple(
      fc.constantFrom('http://', 'HTTPS://', 'http:/', 'ftp://', ''),
      fc.constantFrom('a.test', 'A.Test.', 'a.test:8080', '[::1]', '127.1', 'user@a.test', 'a_b.test:0', ''),
      fc.oneof(fc.constantFrom('', '/', '/x?y', '?q', '#f', '\\'), fc.string({ unit: 'binary', maxLength: 8 })),
    )
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(fc.oneof(target, fc.string({ unit: 'binary' })), (text) => {
      const parsed = parseAbsolute(text);
      if ('refusal' in parsed) return parsed.refusal.status >= 400 && parsed.refusal.code !== '';
      const { scope, origin } = parsed;
      const again = parseAbsolute(`${scope.scheme}://${scope.authority}${origin}`);
      return (
        origin.startsWith('/') &&
        'scope' in again &&
        again.scope.authority === scope.authority &&
        again.origin === origin
      );
    }),
    runs,
  );
  t.pass();
});

test('Callers.authenticate() never throws, and knows a caller by exactly its id and token', (t) => {
  const callers = new Callers();
  const caller = {
    id: 'ci',
    info: { id: 'ci', labels: {} },
    policy: { name: 'p', current: null },
    tokenHash: hashToken('correct-token'),
    pins: new Map(),
    isSelfTest: false,
    isAttached: true,
    connections: 0,
    standIns: new Map(),
  };
  callers.add(caller);
  callers.add({ ...caller, id: 'socket-only', tokenHash: null });
  const pair = fc
    .tuple(
      fc.constantFrom('ci', 'CI', 'ci ', '', 'socket-only', '__proto__', 'x'),
      fc.constantFrom(':', '', '::'),
      fc.constantFrom('correct-token', 'correct-toke', 'Correct-token', '', 'correct-token\0'),
    )
    .map((parts) => parts.join(''));
  const value = pair.map((text) => `Basic ${Buffer.from(text, 'latin1').toString('base64')}`);
  fc.assert(
    fc.property(fc.oneof(value, fc.string({ unit: 'binary', maxLength: 60 })), (text) => {
      const isRight = text === `Basic ${btoa('ci:correct-token')}`;
      return callers.authenticate(text) === (isRight ? caller : null);
    }),
    runs,
  );
  t.is(callers.authenticate(`basic ${btoa('ci:correct-token')}`), caller);
});
