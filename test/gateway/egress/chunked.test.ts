import test from 'ava';
import fc from 'fast-check';
import { ChunkedScanner } from '../../../gateway/egress/http/chunked.ts';

/** Scans pieces one after the other; the payload, or why not. */
function scan(pieces: readonly Buffer[]): { data: string; done: boolean; failure: string; rest: number } {
  const scanner = new ChunkedScanner();
  const data: Buffer[] = [];
  let rest = 0;
  for (const piece of pieces) {
    if (scanner.done) {
      rest += piece.length;
      continue;
    }
    const stop = scanner.scan(piece, 0, piece.length, (start, end) => data.push(piece.subarray(start, end)));
    if (stop < 0) break;
    rest += piece.length - stop;
  }
  return { data: Buffer.concat(data).toString('latin1'), done: scanner.done, failure: scanner.failure, rest };
}

const one = (text: string) => scan([Buffer.from(text, 'latin1')]);

const bad: readonly [name: string, text: string, failure: RegExp][] = [
  ['a negative size', '-1\r\nx\r\n', /not hexadecimal/],
  ['a signed size', '+1\r\nx\r\n', /not hexadecimal/],
  ['a 0x size', '0x1\r\nx\r\n', /not hexadecimal/],
  ['an empty size', '\r\n', /not hexadecimal/],
  ['a size with trailing space', '1 \r\nx\r\n', /not hexadecimal/],
  ['a huge size', 'fffffffffffffffff\r\n', /too large/],
  ['a bare LF after the size', '1\nx\r\n', /not hexadecimal/],
  ['a CR without LF after the size', '1\rx', /CRLF/],
  ['data longer than its size', '1\r\nxy\r\n', /longer/],
  ['data that ends in LF', '1\r\nx\n', /longer/],
  ['an endless extension', `1;${'a'.repeat(400)}`, /too long/],
  ['NUL in an extension', '1;\0\r\n', /control/],
  ['endless trailers', `0\r\n${'X: y\r\n'.repeat(4000)}`, /too long/],
  ['a folded trailer', '0\r\n X: y\r\n\r\n', /malformed/],
  ['an end without LF', '0\r\n\rX', /CRLF/],
];

for (const [name, text, failure] of bad)
  test(`ChunkedScanner refuses ${name}`, (t) => t.regex(one(text).failure, failure));

test('ChunkedScanner drops extensions and trailers and stops at the end', (t) => {
  t.deepEqual(one('3;a=b\r\nabc\r\n0\r\nHost: evil\r\n\r\nGET /'), { data: 'abc', done: true, failure: '', rest: 5 });
});

test('ChunkedScanner refuses a body that is mostly framing', (t) => {
  const result = scan(Array.from({ length: 1100 }, () => Buffer.from('1\r\nx\r\n'.repeat(1000))));
  t.regex(result.failure, /more chunk framing than data/);
});

test('ChunkedScanner finds the same payload however the bytes are cut', (t) => {
  const chunk = fc.string({ minLength: 1, maxLength: 40, unit: 'binary-ascii' });
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 8 }), fc.array(fc.nat(500), { maxLength: 10 }), (chunks, cuts) => {
      const body = Buffer.from(
        `${chunks.map((text) => `${text.length.toString(16)}\r\n${text}\r\n`).join('')}0\r\n\r\n`,
        'latin1',
      );
      const at = [...cuts.map((cut) => cut % body.length), 0, body.length].sort((a, b) => a - b);
      const pieces = at.slice(1).map((end, i) => body.subarray(at[i], end));
      const result = scan(pieces);
      return result.done && result.rest === 0 && result.data === chunks.join('');
    }),
  );
  t.pass();
});

test('ChunkedScanner never throws on arbitrary bytes', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => typeof scan([Buffer.from(bytes)]).failure === 'string'),
  );
  t.pass();
});
