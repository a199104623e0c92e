import test from 'ava';
import fc from 'fast-check';
import { RequestText } from '../../../gateway/audit/request-text.ts';
import { type FullRecord, isFull, Stamp } from '../../../gateway/audit/stamp.ts';
import type { RequestRecord } from '../../../gateway/audit/types.ts';
import { record } from './fixture.ts';

/** One connection's record; the parts that stay are the same objects, as on the data path. */
const base = { ...record(), raw: null, request: { ...full(record()).request, query: 'a=*' } };
const chain = { seq: 42, time: '2026-01-02T03:04:05.678901Z', prev: 'e'.repeat(64) };

/** The text a stamp made for `first` gives for `next`, or null when it says it cannot. */
function stamped(first: RequestRecord, next: FullRecord): string | null {
  const stamp = Stamp.of(first, new RequestText('n1'));
  if (stamp === null || !stamp.fits(next)) return null;
  const bytes = Buffer.alloc(stamp.roomFor(next));
  const end = stamp.write(bytes, 0, next, chain);
  return end < 0 ? null : bytes.toString('latin1', 0, end);
}

function slow(of: RequestRecord): string {
  const text = new RequestText('n1');
  text.build(of, chain);
  return text.head + text.tail;
}

function full(of: RequestRecord): FullRecord {
  if (!isFull(of)) throw new Error('the fixture is full');
  return of;
}

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({ unit: 'grapheme-ascii', maxLength: 60 }),
  fc.constantFrom('/a', '/a/b?', '"', '\\', '@probe-path-51f0c2@', '7770000000000001', '\u007f', '\u0080', ''),
);
const duration = fc.oneof(
  fc.nat(10_000_000).map((us) => us / 1000),
  fc.double({ noNaN: true, min: 0 }),
  fc.constantFrom(0, 0.001, 0.01, 0.1, 1, 10.5, 999_999_999.999, 0.0005, -1, Number.NaN, 1e21),
);
const bytes = fc.oneof(fc.nat(), fc.constantFrom(0, 9, 10, 99, 100, Number.MAX_SAFE_INTEGER, 1.5, -1));

const variant = fc.record({
  id: fc.constantFrom('01HZXW8K5QJ4F6Y7Z8A9BCDEFG', 'x', ''),
  path: text,
  query: text,
  requestBytes: bytes,
  responseBytes: bytes,
  durationMs: duration,
  firstByteMs: duration,
});

test('Stamp.write() gives the slow way’s text byte for byte, or says it cannot', (t) => {
  let written = 0;
  fc.assert(
    fc.property(variant, fc.boolean(), text, (v, hasQuery, host) => {
      const request = { ...full(base).request, host, query: hasQuery ? 'a=*' : null };
      const first = { ...base, request };
      const next = full({
        ...first,
        id: v.id,
        request: { ...request, path: v.path, query: hasQuery ? v.query : null, bytes: v.requestBytes },
        response: {
          ...full(base).response,
          bytes: v.responseBytes,
          durationMs: v.durationMs,
          firstByteMs: v.firstByteMs,
        },
      });
      const fast = stamped(first, next);
      if (fast === null) return;
      written++;
      t.is(fast, slow(next));
    }),
    { numRuns: 1000 },
  );
  t.true(written > 20, `only ${written} were written`);
});

test('Stamp.write() takes the ordinary record', (t) => {
  t.is(stamped(base, full(base)), slow(base));
});

const other: readonly [name: string, change: Partial<RequestRecord>][] = [
  ['rule', { rule: 'another' }],
  ['reason', { reason: 'another' }],
  ['code', { code: 'another' }],
  ['verdict', { verdict: 'deny' }],
  ['redactions', { redactions: 1 }],
  ['raw', { raw: 'x' }],
  ['credential', { credential: null }],
  ['upstream', { upstream: null }],
  ['sandbox', { sandbox: null }],
  ['policy', { policy: null }],
  ['response', { response: null }],
];

for (const [name, change] of other) {
  test(`Stamp.fits() is false when the ${name} is another`, (t) => {
    const stamp = Stamp.of(base, new RequestText('n1'));
    t.true(stamp?.fits(base));
    t.false(stamp?.fits({ ...base, ...change }));
  });
}
