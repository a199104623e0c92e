/** Path globs: `*` inside one segment, `**` for whole segments. No other syntax, so nothing reads differently than it looks. */
import { MAX_GLOB_STARS, MAX_PATTERN_LENGTH, MAX_PATTERN_SEGMENTS } from './bounds.ts';
import { canonical, failure } from './canonical.ts';
import { type Glob, globOf, isWellFormed, matchGlob } from './glob.ts';
import { canonicalTarget } from './target.ts';
import type { Canonical, CanonicalFailure } from './types.ts';

export interface PathPattern {
  /** Canonical text: parsing it gives the same pattern again. */
  readonly text: string;
  readonly shape:
    | { readonly kind: 'exact' }
    /** `/x/**`: the prefix itself and everything below it; the empty prefix is everything. */
    | { readonly kind: 'tree'; readonly prefix: string; readonly below: string }
    | { readonly kind: 'segments'; readonly segments: readonly SegmentPattern[] };
}

/** `deep` stands for any number of whole segments; `some` is `*` alone and needs a segment that is not empty. */
export type SegmentPattern = { readonly kind: 'deep' } | { readonly kind: 'some' } | Glob;

/**
 * Reads a path glob in the same canonical form as a request's path. Unicode is percent-encoded. Braces, brackets,
 * parentheses, `?`, `|`, `^`, `\`, `;`, dot segments and doubled slashes are errors rather than guesses.
 */
export function parsePathPattern(raw: string): Canonical<PathPattern> {
  if (raw.length > MAX_PATTERN_LENGTH) {
    return failure('path_pattern', `A path pattern has at most ${MAX_PATTERN_LENGTH} characters.`);
  }
  const refused = refuseSyntax(raw);
  if (refused !== null) {
    return refused;
  }
  const target = canonicalTarget(encodeUnicode(raw));
  if (!target.ok) {
    return target;
  }
  const { path } = target.value;
  if (path.split('/').length !== raw.split('/').length || /\/(?:\.|%2e){1,2}(?:\/|$)/i.test(raw)) {
    return failure('path_pattern', `A path pattern is written without . and .. segments and doubled slashes: ${path}`);
  }
  if (target.value.encodedPercent) {
    return failure('path_pattern', 'A path pattern with %25 never matches: such requests are refused.');
  }
  return patternOf(path);
}

/** Whether a canonical path is meant by the pattern. Case counts. */
export function matchPath(pattern: PathPattern, path: string): boolean {
  const { shape } = pattern;
  switch (shape.kind) {
    case 'exact':
      return path === pattern.text;
    case 'tree':
      return path.startsWith(shape.below) || path === shape.prefix;
    case 'segments':
      return matchSegments(shape.segments, path);
    default:
      return shape satisfies never;
  }
}

/** The pattern of text that is known to be well-formed, such as a folded form of a parsed pattern. */
export function patternOfText(text: string): PathPattern {
  const segments = text.slice(1).split('/').map(segmentOf);
  const firstWild = segments.findIndex((segment) => segment.kind !== 'literal');
  if (firstWild < 0) {
    return { text, shape: { kind: 'exact' } };
  }
  if (firstWild === segments.length - 1 && segments[firstWild]?.kind === 'deep') {
    return { text, shape: { kind: 'tree', prefix: text.slice(0, -3), below: text.slice(0, -2) } };
  }
  return { text, shape: { kind: 'segments', segments } };
}

function refuseSyntax(raw: string): CanonicalFailure | null {
  if (!raw.startsWith('/')) {
    return failure('path_pattern', 'A path pattern starts with a slash.');
  }
  const odd = /[{}[\]()|^\\?#;]/.exec(raw)?.[0];
  if (odd === '?') {
    return failure(
      'path_pattern',
      'A path pattern has no query and no single-character wildcard; use query: {key: glob}.',
    );
  }
  if (odd !== undefined) {
    return failure('path_pattern', `A path pattern knows only * and **; ${odd} has no meaning in it.`);
  }
  if (raw.split('/').some((segment) => segment.includes('**') && segment !== '**')) {
    return failure('path_pattern', '** stands for whole segments: /a/**/b. Inside a segment write a single *.');
  }
  return null;
}

function encodeUnicode(raw: string): string {
  // A lone surrogate stays as it is and is refused as non-ASCII by the target's rules.
  return isWellFormed(raw) ? raw.replace(/[^\x00-\x7f]+/g, encodeURIComponent) : raw;
}

function patternOf(path: string): Canonical<PathPattern> {
  const segments = path.split('/');
  if (segments.length - 1 > MAX_PATTERN_SEGMENTS) {
    return failure('path_pattern', `A path pattern has at most ${MAX_PATTERN_SEGMENTS} segments.`);
  }
  if (segments.some((segment) => segment.split('*').length - 1 > MAX_GLOB_STARS)) {
    return failure('path_pattern', `A segment of a path pattern has at most ${MAX_GLOB_STARS} stars.`);
  }
  if (segments.some((segment, index) => segment === '**' && segments[index + 1] === '**')) {
    return failure('path_pattern', '** next to ** means the same as one.');
  }
  return canonical(patternOfText(path));
}

function segmentOf(text: string): SegmentPattern {
  if (text === '**') {
    return { kind: 'deep' };
  }
  return text === '*' ? { kind: 'some' } : globOf(text);
}

/**
 * Walks pattern and path together; on a mismatch the last `**` takes one segment more. Going back to the last one only is
 * enough, because an earlier `**` could win nothing that the last cannot. Work: path length × pattern segments.
 */
function matchSegments(segments: readonly SegmentPattern[], path: string): boolean {
  const end = path.length + 1;
  let index = 0;
  let at = 1;
  let deepIndex = -1;
  let deepAt = 0;
  while (at < end) {
    const segment = segments[index];
    if (segment?.kind === 'deep') {
      deepIndex = index;
      deepAt = at;
      index += 1;
      continue;
    }
    const stop = segmentEnd(path, at);
    if (segment !== undefined && matchSegment(segment, path, at, stop)) {
      index += 1;
      at = stop + 1;
      continue;
    }
    if (deepIndex < 0) {
      return false;
    }
    deepAt = segmentEnd(path, deepAt) + 1;
    at = deepAt;
    index = deepIndex + 1;
  }
  while (segments[index]?.kind === 'deep') {
    index += 1;
  }
  return index === segments.length;
}

function segmentEnd(path: string, at: number): number {
  const slash = path.indexOf('/', at);
  return slash < 0 ? path.length : slash;
}

function matchSegment(
  segment: Exclude<SegmentPattern, { kind: 'deep' }>,
  path: string,
  from: number,
  to: number,
): boolean {
  return segment.kind === 'some' ? to > from : matchGlob(segment, path, from, to);
}
