/** Containment and overlap of the glob languages of a policy, for checks between rules and credentials. */

/** Whether every path that `inner` matches is matched by `outer`. Errs to false. */
export function pathCovers(outer: string, inner: string): boolean {
  // A policy lists thousands of paths and compares each with each: nearly all pairs end here.
  if (!outer.includes('*')) return outer === inner;
  if (!inner.startsWith(literalStart(outer))) return false;
  return sequenceCovers(outer.split('/'), inner.split('/'), isSpan, segmentCovers);
}

/** Whether some path is matched by both. Errs to true. */
export function pathsIntersect(one: string, other: string): boolean {
  const starts = [literalStart(one), literalStart(other)] as const;
  if (!starts[0].startsWith(starts[1]) && !starts[1].startsWith(starts[0])) return false;
  return sequencesIntersect(one.split('/'), other.split('/'), isSpan, segmentsIntersect);
}

/** Whether every name that `inner` matches is matched by `outer`: exact names, `*.x`, and `**`. */
export function hostCovers(outer: string, inner: string): boolean {
  if (outer === inner || outer === '**' || outer === '*') return true;
  if (outer.startsWith('*.')) return isBelow(inner, outer.slice(1));
  return false;
}

/** Whether some name is matched by both. Errs to true for patterns with a `*` in the middle. */
export function hostsIntersect(one: string, other: string): boolean {
  if (hostCovers(one, other) || hostCovers(other, one)) return true;
  return isOddHost(one) || isOddHost(other);
}

/** Whether a `*` stands anywhere but as the whole first label of `*.x`; `**` is one of them. */
export function isOddHost(host: string): boolean {
  return host.includes('*', host.startsWith('*.') ? 2 : 0);
}

/** What every path that the glob matches starts with; `/x/**` includes `/x`, so no slash at the end. */
function literalStart(glob: string): string {
  const star = glob.indexOf('*');
  const end = star === -1 ? glob.length : star;
  return glob.slice(0, glob[end - 1] === '/' ? end - 1 : end);
}

/** `*.x` covers `a.x`, `*.a.x`; the dot before x keeps labels whole. */
function isBelow(host: string, dotSuffix: string): boolean {
  return host.length > dotSuffix.length && host.endsWith(dotSuffix);
}

const isSpan = (segment: string): boolean => segment === '**';
const isStar = (character: string): boolean => character === '*';
const sameCharacter = (a: string, b: string): boolean => a === b;

function segmentCovers(outer: string, inner: string): boolean {
  // A `**` of the inner pattern is many segments and only a `**` takes it.
  if (inner === '**') return false;
  // The empty last segment of `/x/` is left to exact spelling.
  if (inner === '') return outer === '';
  return sequenceCovers([...outer], [...inner], isStar, sameCharacter);
}

function segmentsIntersect(one: string, other: string): boolean {
  return sequencesIntersect([...one], [...other], isStar, sameCharacter);
}

/**
 * A wildcard of `outer` takes any run of inner tokens, wildcards too; any other token takes one token that `covers` accepts.
 * One row per outer token, so the cost is the product of the lengths.
 */
function sequenceCovers(
  outer: readonly string[],
  inner: readonly string[],
  isWild: (token: string) => boolean,
  covers: (outer: string, inner: string) => boolean,
): boolean {
  // row[j]: the outer tokens so far cover exactly the first j inner tokens.
  let row = Array.from({ length: inner.length + 1 }, (_, index) => index === 0);
  for (const token of outer) {
    const next: boolean[] = [];
    for (let index = 0; index <= inner.length; index++) {
      if (isWild(token)) {
        next.push(row[index] === true || next[index - 1] === true);
        continue;
      }
      const before = inner[index - 1];
      next.push(before !== undefined && row[index - 1] === true && !isWild(before) && covers(token, before));
    }
    row = next;
  }
  return row[inner.length] === true;
}

/** Both sides may use wildcards; true when one sequence of tokens satisfies both. */
function sequencesIntersect(
  one: readonly string[],
  other: readonly string[],
  isWild: (token: string) => boolean,
  meet: (a: string, b: string) => boolean,
): boolean {
  // row[j]: some sequence satisfies the tokens of `one` so far and the first j tokens of `other`.
  let row = startRow(other, isWild);
  for (const token of one) {
    const next: boolean[] = [];
    for (let index = 0; index <= other.length; index++) {
      const before = other[index - 1];
      const skipsBoth = before !== undefined && row[index - 1] === true && meetTokens(token, before, isWild, meet);
      const takenByOne = isWild(token) && (row[index] === true || next[index - 1] === true);
      const takenByOther = before !== undefined && isWild(before) && (next[index - 1] === true || row[index] === true);
      next.push(skipsBoth || takenByOne || takenByOther);
    }
    row = next;
  }
  return row[other.length] === true;
}

function startRow(other: readonly string[], isWild: (token: string) => boolean): boolean[] {
  const row = [true];
  for (const token of other) row.push(row.at(-1) === true && isWild(token));
  return row;
}

function meetTokens(
  a: string,
  b: string,
  isWild: (token: string) => boolean,
  meet: (a: string, b: string) => boolean,
): boolean {
  return isWild(a) || isWild(b) || meet(a, b);
}
