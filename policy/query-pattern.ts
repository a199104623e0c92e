/** Conditions on query parameters (`query: {key: glob}`), read as application/x-www-form-urlencoded pairs. */
import { MAX_GLOB_STARS, MAX_PATTERN_LENGTH } from './bounds.ts';
import { canonical, failure } from './canonical.ts';
import { type Glob, globOf, isWellFormed, matchGlob } from './glob.ts';
import type { Canonical } from './types.ts';

export interface QueryGlob {
  readonly text: string;
  readonly glob: Glob;
}

/** One condition of a rule. `key` and the glob are written decoded. */
export interface QueryCondition {
  readonly key: string;
  readonly value: QueryGlob;
}

/** One pair of a query; null stands for text that is not percent-encoded UTF-8. */
export interface QueryPair {
  readonly key: string | null;
  readonly value: string | null;
}

/** Reads a glob for decoded values: `*` is any run of characters, everything else stands for itself. */
export function parseQueryGlob(raw: string): Canonical<QueryGlob> {
  if (raw.length > MAX_PATTERN_LENGTH) {
    return failure('query_glob', `A query glob has at most ${MAX_PATTERN_LENGTH} characters.`);
  }
  if (raw.includes('**')) {
    return failure('query_glob', 'In a query value * already stands for any run of characters; ** has no meaning.');
  }
  if (raw.split('*').length - 1 > MAX_GLOB_STARS) {
    return failure('query_glob', `A query glob has at most ${MAX_GLOB_STARS} stars.`);
  }
  if (!isWellFormed(raw)) {
    return failure('query_glob', 'A query glob is well-formed Unicode.');
  }
  return canonical({ text: raw, glob: globOf(raw) });
}

export function matchQueryGlob(pattern: QueryGlob, value: string): boolean {
  return matchGlob(pattern.glob, value, 0, value.length);
}

/**
 * Every way a server may split this query: at `&`, and also at `;` when it holds one, as older servers do. A condition
 * that opens something must hold for each reading, one that refuses for any.
 */
export function readQuery(query: string): QueryPair[][] {
  const readings = [readPairs(query.split('&'))];
  if (query.includes(';')) {
    readings.push(readPairs(query.split(/[&;]/)));
  }
  return readings;
}

/** For allow: each key is there and each of its values matches, in every reading; a malformed pair matches nothing. */
export function allowsQuery(conditions: readonly QueryCondition[], readings: readonly QueryPair[][]): boolean {
  return readings.every(
    (pairs) =>
      pairs.every((pair) => pair.key !== null && pair.value !== null) &&
      conditions.every(({ key, value }) => {
        const values = pairs.filter((pair) => pair.key === key);
        return values.length > 0 && values.every((pair) => pair.value !== null && matchQueryGlob(value, pair.value));
      }),
  );
}

/**
 * For deny: each key has some value that matches, in any reading, compared case-folded; what cannot be decoded matches.
 * `conditions` are already folded with {@link foldQuery}.
 */
export function deniesQuery(conditions: readonly QueryCondition[], readings: readonly QueryPair[][]): boolean {
  return readings.some((pairs) =>
    conditions.every(({ key, value }) =>
      pairs.some(
        (pair) =>
          (pair.key === null || foldText(pair.key) === key) &&
          (pair.value === null || matchQueryGlob(value, foldText(pair.value))),
      ),
    ),
  );
}

/** The form of a condition that deny rules compare with. */
export function foldQuery({ key, value }: QueryCondition): QueryCondition {
  const text = foldText(value.text);
  return { key: foldText(key), value: { text, glob: globOf(text) } };
}

/** Compatibility forms and case folded away (full-width letters, ligatures, the Kelvin sign): for comparisons that refuse. */
export function foldText(text: string): string {
  return text.normalize('NFKC').toLowerCase();
}

function readPairs(parts: readonly string[]): QueryPair[] {
  return parts
    .filter((part) => part !== '')
    .map((part) => {
      const equals = part.indexOf('=');
      return equals < 0
        ? { key: decodeForm(part), value: '' }
        : { key: decodeForm(part.slice(0, equals)), value: decodeForm(part.slice(equals + 1)) };
    });
}

function decodeForm(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    // URIError: a bad escape or bytes that are not UTF-8.
    return null;
  }
}
