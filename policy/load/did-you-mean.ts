/** Finds the name somebody most likely wanted to write. */

/** Longer words are not compared: the cost is quadratic and nobody mistypes sixty characters. */
const MAX_WORD_CHARS = 64;

/** The candidate nearest to `word`, or null when none is near enough to be a slip. */
export function didYouMean(word: string, candidates: Iterable<string>): string | null {
  if (word.length === 0 || word.length > MAX_WORD_CHARS) return null;
  const folded = word.toLowerCase().replaceAll(/[-_ ]/g, '');
  let best: string | null = null;
  // One slip in a short word, two in a longer one: beyond that a suggestion misleads.
  let bestDistance = word.length <= 4 ? 2 : 3;
  for (const candidate of candidates) {
    if (candidate.length > MAX_WORD_CHARS) continue;
    if (candidate.toLowerCase().replaceAll(/[-_ ]/g, '') === folded) return candidate;
    const distance = damerauLevenshtein(folded, candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b` (optimal string alignment). */
export function damerauLevenshtein(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      const substitution = at(last, column - 1) + (same ? 0 : 1);
      let distance = Math.min(at(last, column) + 1, at(current, column - 1) + 1, substitution);
      const isSwap = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (isSwap) distance = Math.min(distance, at(beforeLast, column - 2) + 1);
      current.push(distance);
    }
    beforeLast = last;
    last = current;
  }
  return at(last, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? 0;
}
