import test from 'ava';
import fc from 'fast-check';
import { FAILED, INCOMPLETE } from '../../../gateway/egress/http/header-block.ts';
import { ResponseHead } from '../../../gateway/egress/http/response-head.ts';
import { ResponseBody } from '../../../gateway/egress/response-body.ts';
import { cutHopLines } from '../../../gateway/egress/response-lines.ts';
import { Scrubber } from '../../../gateway/egress/scrub.ts';
import { preparedCredential } from './prepared.ts';

function parse(text: string): ResponseHead | string {
  const head = new ResponseHead();
  const buf = Buffer.from(text, 'latin1');
  const end = head.parse(buf, 0, buf.length);
  return end === INCOMPLETE ? 'incomplete' : end === FAILED ? head.failure : head;
}

const refused: readonly [name: string, text: string][] = [
  ['another protocol', 'SSH-2.0-OpenSSH\r\n\r\n'],
  ['HTTP/2', 'HTTP/2.0 200 OK\r\n\r\n'],
  ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
  ['a status below 100', 'HTTP/1.1 099 OK\r\n\r\n'],
  ['a bare CR in a header', 'HTTP/1.1 200 OK\r\nA: b\rSet-Cookie: x\r\n\r\n'],
  ['a bare LF in a header', 'HTTP/1.1 200 OK\r\nA: b\nSet-Cookie: x\r\n\r\n'],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
  ['length and chunked', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['an unknown coding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n'],
];

for (const [name, text] of refused)
  test(`ResponseHead.parse() refuses ${name}`, (t) => t.is(typeof parse(text), 'string'));

const framed: readonly [head: string, method: string, framing: string][] = [
  ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', 'GET', 'length'],
  ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', 'HEAD', 'none'],
  ['HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n', 'GET', 'none'],
  ['HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n', 'GET', 'none'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', 'GET', 'chunked'],
  ['HTTP/1.1 200 OK\r\n\r\n', 'GET', 'close'],
  ['HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n', 'GET', 'none'],
];

for (const [text, method, framing] of framed) {
  test(`ResponseHead.framing() is ${framing} for ${method} ${JSON.stringify(text.slice(9, 60))}`, (t) => {
    const head = parse(text);
    t.is(typeof head === 'string' ? head : head.framing(method), framing);
  });
}

test('cutHopLines() takes out what ends here and keeps the rest in order, against the body', (t) => {
  const text =
    'HTTP/1.1 200 OK\r\nConnection: x\r\nA: 1\r\nKeep-Alive: 5\r\nProxy-Authenticate: Basic\r\nB: 2\r\nAlt-Svc: h3\r\n\r\nbody';
  const buf = Buffer.from(text);
  const head = new ResponseHead();
  head.parse(buf, 0, buf.length);
  t.is(buf.toString('latin1', cutHopLines(buf, head, false)), 'HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\n\r\nbody');
});

/** Runs a body through in the given pieces; the text the client gets, chunk framing removed. */
function relay(framing: 'length' | 'close' | 'chunked', payload: string, cuts: readonly number[], secret: string) {
  const scrubber = new Scrubber([preparedCredential(secret)]);
  const wire = framing === 'chunked' ? `${payload.length.toString(16)}\r\n${payload}\r\n0\r\n\r\n` : payload;
  const bytes = Buffer.from(wire, 'latin1');
  const body = new ResponseBody(framing, payload.length, framing === 'chunked' ? 'raw' : 'verbatim', scrubber);
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  let out = '';
  at.slice(1).forEach((end, i) => {
    const piece = Buffer.from(bytes.subarray(at[i], end));
    out += body.transform(piece, 0, piece.length)?.out.toString('latin1') ?? 'FAILED';
  });
  return { out: out + (body.flush()?.toString('latin1') ?? ''), replaced: scrubber.replaced };
}

test('ResponseBody masks an echoed secret wherever reads and chunks cut it, and changes nothing else', (t) => {
  const secret = 'ab-aab-secret';
  const piece = fc.constantFrom(secret, 'ab-', 'aab', 'a', 'ab-aab-secre', 'x', ' ');
  fc.assert(
    fc.property(
      fc.constantFrom('length', 'close', 'chunked'),
      fc.array(piece, { minLength: 1, maxLength: 12 }),
      fc.array(fc.nat(400), { maxLength: 12 }),
      (framing, parts, cuts) => {
        const payload = parts.join('');
        const { out } = relay(framing, payload, cuts, secret);
        return out === payload.replaceAll(secret, '*'.repeat(secret.length));
      },
    ),
    { numRuns: 500 },
  );
  t.pass();
});

test('ResponseBody holds back nothing once the body is whole', (t) => {
  t.deepEqual(relay('length', 'ends in ab-aab', [], 'ab-aab-secret'), { out: 'ends in ab-aab', replaced: 0 });
});
