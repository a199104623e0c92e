import test from 'ava';
import { pairedRatio, quantile, quartiles, sortedQuantile } from './stats.ts';

const quantileRows: readonly (readonly [string, readonly number[], number, number])[] = [
  ['the only value', [7], 0.5, 7],
  ['the middle of an odd sample in any order', [9, 1, 5], 0.5, 5],
  ['half way between the two middles of an even sample', [4, 1, 3, 2], 0.5, 2.5],
  ['the lowest at 0', [3, 1, 2], 0, 1],
  ['the highest at 1', [3, 1, 2], 1, 3],
  ['a place between neighbours', [0, 10], 0.99, 9.9],
  ['the highest above 1', [1, 2], 2, 2],
];

for (const [what, values, fraction, expected] of quantileRows) {
  test(`quantile() gives ${what}`, (t) => t.is(quantile(values, fraction), expected));
}

test('quantile() compares numbers, not texts', (t) => {
  t.is(quantile([10, 9, 100], 0.5), 10);
});

test('quantile() is NaN when the sample is empty', (t) => {
  t.true(Number.isNaN(quantile([], 0.5)));
  t.true(Number.isNaN(sortedQuantile(new Float64Array(0), 0.5)));
});

test('quartiles() gives median and both quartiles and leaves its argument alone', (t) => {
  const values = [5, 4, 3, 2, 1];
  t.deepEqual(quartiles(values), { median: 3, q1: 2, q3: 4 });
  t.deepEqual(values, [5, 4, 3, 2, 1]);
});

test('pairedRatio() pairs by round, so a drift of the machine cancels out', (t) => {
  t.deepEqual(pairedRatio([2, 20, 200], [1, 10, 100]), { median: 2, q1: 2, q3: 2, pairs: 3 });
});

test('pairedRatio() leaves out rounds with a missing half or nothing to divide by', (t) => {
  t.deepEqual(pairedRatio([null, 3, 4, Number.NaN, 6], [1, 1, null, 1, 0]), { median: 3, q1: 3, q3: 3, pairs: 1 });
});

test('pairedRatio() is null when no pair is left', (t) => {
  t.is(pairedRatio([], [1]), null);
  t.is(pairedRatio([1], [null]), null);
});
