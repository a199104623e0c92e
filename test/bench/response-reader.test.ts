import test from 'ava';
import fc from 'fast-check';
import { type Answer, ResponseReader } from './response-reader.ts';

const BODY = '{"a":"b\r\n\r\n"}';
const GOOD = Buffer.from(
  `HTTP/1.1 200 OK\r\nServer: x\r\ncontent-length:${BODY.length}\r\nX-Content-Length: 7\r\n\r\n${BODY}`,
);

test('push() gives an answer that came in one piece', (t) => {
  const answer = new ResponseReader({ keepBody: true }).push(GOOD);
  t.like(answer, { status: 200, bodyBytes: BODY.length });
  t.is(answer?.body.toString(), BODY);
});

test('push() keeps no body unless asked', (t) => {
  t.is(new ResponseReader().push(GOOD)?.body.length, 0);
});

test('push() takes an answer without a body', (t) => {
  t.is(new ResponseReader().push(Buffer.from('HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n'))?.status, 403);
});

test('push() gives the same answers however they are cut into chunks', (t) => {
  const cuts = fc.array(fc.integer({ min: 1, max: GOOD.length - 1 }), { maxLength: 8 });
  fc.assert(
    fc.property(cuts, fc.integer({ min: 1, max: 3 }), (places, times) => {
      const reader = new ResponseReader({ keepBody: true });
      const answers = Array.from({ length: times }, () => pushInPieces(reader, GOOD, places)).flat();
      return answers.length === times && answers.every((one) => one.status === 200 && one.body.toString() === BODY);
    }),
  );
  t.pass();
});

for (const [what, text] of [
  ['no length', 'HTTP/1.1 200 OK\r\nServer: x\r\n\r\n'],
  ['a length that is no number', 'HTTP/1.1 200 OK\r\nContent-Length: 1e3\r\n\r\n'],
  ['a length above the bound', 'HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n'],
  ['chunked coding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ['an interim answer', 'HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n'],
  ['something that is not HTTP', 'SSH-2.0-OpenSSH\r\n\r\n'],
  ['bytes after the end', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab'],
  ['a head without end', `HTTP/1.1 200 OK\r\nX: ${'y'.repeat(17_000)}`],
] as const) {
  test(`push() throws on ${what}, so that no wrong figure is counted`, (t) => {
    t.throws(() => new ResponseReader().push(Buffer.from(text)), { message: /^Cannot read answer: / });
  });
}

test('push() never throws anything but its own error', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.boolean(), (bytes, withStart) => {
      const start = withStart ? 'HTTP/1.1 200 OK\r\n' : '';
      try {
        new ResponseReader().push(Buffer.concat([Buffer.from(start), bytes]));
        return true;
      } catch (error) {
        return error instanceof Error && error.message.startsWith('Cannot read answer: ');
      }
    }),
  );
  t.pass();
});

function pushInPieces(reader: ResponseReader, bytes: Buffer, places: readonly number[]): readonly Answer[] {
  const ends = [...new Set(places)].sort((a, b) => a - b);
  const bounds = [0, ...ends, bytes.length];
  return bounds.slice(1).flatMap((end, at) => reader.push(bytes.subarray(bounds[at], end)) ?? []);
}
