import test from 'ava';
import fc from 'fast-check';
import { damerauLevenshtein, didYouMean } from '../../../policy/load/did-you-mean.ts';

const keys = ['name', 'effect', 'hosts', 'cidrs', 'methods', 'paths', 'unsafeWide', 'encodedSlash'];

const slips: readonly (readonly [word: string, expected: string | null])[] = [
  ['hots', 'hosts'],
  ['host', 'hosts'],
  ['HOSTS', 'hosts'],
  ['unsafe_wide', 'unsafeWide'],
  ['unsafe-wide', 'unsafeWide'],
  ['efect', 'effect'],
  ['effcet', 'effect'],
  ['path', 'paths'],
  ['methdos', 'methods'],
  ['colour', null],
  ['x', null],
  ['', null],
  ['h'.repeat(65), null],
];

for (const [word, expected] of slips) {
  test(`didYouMean() says ${expected} for "${word.slice(0, 12)}"`, (t) => {
    t.is(didYouMean(word, keys), expected);
  });
}

test('damerauLevenshtein() counts one for each single edit', (t) => {
  t.is(damerauLevenshtein('abc', 'abc'), 0);
  t.is(damerauLevenshtein('abc', 'abcd'), 1);
  t.is(damerauLevenshtein('abc', 'ac'), 1);
  t.is(damerauLevenshtein('abc', 'axc'), 1);
  t.is(damerauLevenshtein('abc', 'acb'), 1);
  t.is(damerauLevenshtein('', 'abc'), 3);
});

test('damerauLevenshtein() is symmetric and zero only for equal words', (t) => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 8 });
  fc.assert(
    fc.property(word, word, (a, b) => {
      t.is(damerauLevenshtein(a, b), damerauLevenshtein(b, a));
      t.is(damerauLevenshtein(a, b) === 0, a === b);
    }),
  );
});
