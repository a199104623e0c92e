import test from 'ava';
import fc from 'fast-check';
import { createUlid, isUlid } from '../../../gateway/audit/index.ts';

test('createUlid() gives the documented text when time and randomness are fixed', (t) => {
  const next = createUlid(
    () => 1469918176385,
    (into) => into.fill(0),
  );
  t.is(next(), `01ARYZ6S41${'0'.repeat(16)}`);
  t.is(next(), `01ARYZ6S41${'0'.repeat(15)}1`);
});

test('createUlid() carries over when the low limbs are full', (t) => {
  const next = createUlid(
    () => 0,
    (into) => into.fill(255),
  );
  t.is(next(), '0000000000FZZZZZZZZZZZZZZZ');
  t.is(next(), '0000000000G000000000000000');
});

test('createUlid() ascends when the clock stands, steps back or forward', (t) => {
  fc.assert(
    fc.property(fc.array(fc.nat(5000), { minLength: 2, maxLength: 50 }), (times) => {
      let at = 0;
      const next = createUlid(() => 1_700_000_000_000 + (times[at++] ?? 0));
      const ids = times.map(() => next());
      t.deepEqual([...ids].sort(), ids);
      t.is(new Set(ids).size, ids.length);
      t.true(ids.every(isUlid));
    }),
  );
});

test('isUlid() refuses when one character is off', (t) => {
  const good = '01ARYZ6S41TSV4RRFFQ69G5FAV';
  t.true(isUlid(good));
  for (const bad of [
    `${good}0`,
    good.slice(1),
    good.toLowerCase(),
    good.replace('T', 'U'),
    `8${good.slice(1)}`,
    `${good}\n`,
  ]) {
    t.false(isUlid(bad), bad);
  }
});
