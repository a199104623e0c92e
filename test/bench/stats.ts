/** Order statistics of a benchmark: medians and quartiles, because a shared machine makes means and deviations lie. */

/** Median and quartiles of a sample. */
export interface Quartiles {
  readonly median: number;
  readonly q1: number;
  readonly q3: number;
}

/** The value at `fraction` (0..1) of a sample in any order, linear between neighbours. NaN for an empty sample. */
export function quantile(values: readonly number[], fraction: number): number {
  return sortedQuantile(ascending(values), fraction);
}

/** As {@link quantile} for a sample that is already ascending; for large samples that are sorted once. */
export function sortedQuantile(sorted: ArrayLike<number>, fraction: number): number {
  if (sorted.length === 0) return Number.NaN;
  const place = (sorted.length - 1) * Math.min(1, Math.max(0, fraction));
  const below = Math.floor(place);
  const low = sorted[below] ?? Number.NaN;
  const high = sorted[Math.min(below + 1, sorted.length - 1)] ?? Number.NaN;
  return low + (high - low) * (place - below);
}

/** Median and quartiles in one go. */
export function quartiles(values: readonly number[]): Quartiles {
  const sorted = ascending(values);
  return { median: sortedQuantile(sorted, 0.5), q1: sortedQuantile(sorted, 0.25), q3: sortedQuantile(sorted, 0.75) };
}

/**
 * Median and quartiles of `value[i] / base[i]`, one pair a round. A pair with a missing half or a zero base is left out;
 * null when no pair is left. Pairing takes the machine's slow drift out of the ratio.
 */
export function pairedRatio(
  value: readonly (number | null)[],
  base: readonly (number | null)[],
): (Quartiles & { readonly pairs: number }) | null {
  const ratios: number[] = [];
  for (let round = 0; round < Math.min(value.length, base.length); round++) {
    const [top, bottom] = [value[round], base[round]];
    if (typeof top !== 'number' || typeof bottom !== 'number' || !Number.isFinite(top) || !(bottom > 0)) continue;
    ratios.push(top / bottom);
  }
  return ratios.length === 0 ? null : { ...quartiles(ratios), pairs: ratios.length };
}

function ascending(values: readonly number[]): number[] {
  return [...values].sort((a, b) => a - b);
}
