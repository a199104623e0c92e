/** The one canonical form of a request target: what is judged is byte for byte what is sent. */
import { MAX_TARGET_BYTES } from './bounds.ts';
import { canonical, failure } from './canonical.ts';
import type { Canonical, CanonicalFailure, CanonicalTarget } from './types.ts';

/**
 * An origin-form target (RFC 9112 section 3.2.1). Dot segments are resolved and refused above the root, doubled slashes
 * collapsed, unreserved characters decoded, what RFC 3986 does not let stand in a path encoded, `%XX` upper-cased. `%2F`
 * and `%25` are kept and flagged. `;` parameters are kept, and refused where dropping them would change a segment into
 * nothing or a dot segment (`/..;/`). The query is kept as sent. `*` is refused: OPTIONS * is the caller's business.
 */
export function canonicalTarget(raw: string): Canonical<CanonicalTarget> {
  if (raw.length > MAX_TARGET_BYTES) {
    return failure('target_too_long', `The request target is longer than ${MAX_TARGET_BYTES} bytes.`, 414);
  }
  if (raw.charCodeAt(0) !== SLASH) {
    return raw === '*'
      ? failure('target_asterisk', 'The target * names no resource.')
      : failure('target_malformed', 'The request target does not start with a slash.');
  }
  const clean = cleanLength(raw);
  if (clean === raw.length) {
    return canonical({ path: raw, query: null, encodedSlash: false, encodedPercent: false });
  }
  const mark = raw.indexOf('?', Math.min(clean, raw.length));
  const query = mark < 0 ? null : raw.slice(mark + 1);
  const refused = refuseCharacters(raw);
  if (refused !== null) {
    return refused;
  }
  if (clean === mark) {
    return canonical({ path: raw.slice(0, mark), query, encodedSlash: false, encodedPercent: false });
  }
  return canonicalPath(mark < 0 ? raw : raw.slice(0, mark), query);
}

/** Splits a canonical path into its segments with parameters (`;…`) dropped; null when it has none. */
export function withoutParameters(path: string): string | null {
  return path.includes(';') ? path.replace(/;[^/]*/g, '') : null;
}

const SLASH = 47;
const DOT = 46;
const QUESTION = 63;

/** Characters that may stand in a canonical path as they are, without `/`, `%` and `;`: RFC 3986 unreserved, sub-delims, `:` and `@`. */
const plain: readonly boolean[] = Array.from({ length: 128 }, (_, code) =>
  /[A-Za-z0-9\-._~!$&'()*+,=:@]/.test(String.fromCharCode(code)),
);

/** How much of a target from its start is a path in canonical form that needs no second look. */
function cleanLength(raw: string): number {
  let isStart = true;
  let index = 1;
  for (; index < raw.length; index += 1) {
    const code = raw.charCodeAt(index);
    if (code === SLASH) {
      if (isStart) {
        return 0;
      }
      isStart = true;
      continue;
    }
    if (code === QUESTION) {
      return index;
    }
    // Code points past ASCII are not in the table. A leading dot may be a dot segment.
    if (plain[code] !== true || (isStart && code === DOT)) {
      return 0;
    }
    isStart = false;
  }
  return index;
}

function refuseCharacters(raw: string): CanonicalFailure | null {
  if (/[^!-~]/.test(raw)) {
    return failure(
      'target_character',
      'The request target holds a space, a control or a non-ASCII character; percent-encode it.',
    );
  }
  if (raw.includes('#')) {
    return failure('target_fragment', 'The request target holds a fragment, which is never sent.');
  }
  return null;
}

/** `path` starts with a slash and holds printable ASCII only. */
function canonicalPath(path: string, query: string | null): Canonical<CanonicalTarget> {
  if (/\\|%5c/i.test(path)) {
    return failure('target_backslash', 'The path holds a backslash, which some servers take for a slash.');
  }
  if (/%(?![0-9A-Fa-f]{2})/.test(path)) {
    return failure('target_percent', 'The path holds a percent sign without two hexadecimal digits.');
  }
  if (/%[01][0-9a-f]|%7f/i.test(path)) {
    return failure('target_control', 'The path holds an encoded control character.');
  }
  if (!isUtf8(path)) {
    return failure('target_utf8', 'The path holds percent-encoded bytes that are not UTF-8.');
  }
  return resolve(path.replace(/%[0-9A-Fa-f]{2}|["<>[\]^`{|}]/g, canonicalOctet), query);
}

function canonicalOctet(text: string): string {
  if (text.length === 1) {
    return `%${text.charCodeAt(0).toString(16).toUpperCase()}`;
  }
  const char = String.fromCharCode(Number.parseInt(text.slice(1), 16));
  return /[A-Za-z0-9\-._~]/.test(char) ? char : text.toUpperCase();
}

function resolve(path: string, query: string | null): Canonical<CanonicalTarget> {
  const segments: string[] = [];
  let isDirectory = false;
  for (const segment of path.split('/')) {
    isDirectory = segment === '' || segment === '.' || segment === '..';
    if (segment === '..' && segments.pop() === undefined) {
      return failure('target_above_root', 'The path leads above the root.');
    }
    if (isDirectory) {
      continue;
    }
    const refused = refuseSegment(segment);
    if (refused !== null) {
      return refused;
    }
    segments.push(segment);
  }
  const tail = isDirectory && segments.length > 0 ? '/' : '';
  const resolved = `/${segments.join('/')}${tail}`;
  return canonical({
    path: resolved,
    query,
    encodedSlash: resolved.includes('%2F'),
    encodedPercent: resolved.includes('%25'),
  });
}

/** A segment that another server could take for a dot segment or for nothing, after it decodes it or drops parameters. */
function refuseSegment(segment: string): CanonicalFailure | null {
  if (!/;|%(?:2F|3B)/.test(segment)) {
    return null;
  }
  const inner = segment.replaceAll('%3B', ';').split(/%2F|\//);
  if (inner.some((part) => /^\.{0,2};/.test(part))) {
    return failure('target_parameters', 'The path holds ; parameters that hide an empty or a dot segment.');
  }
  if (inner.some((part) => part === '.' || part === '..')) {
    return failure('target_encoded_dots', 'The path holds a dot segment behind an encoded slash.');
  }
  return null;
}

/** Whether the runs of percent-encoded bytes from 0x80 up are well-formed UTF-8 (RFC 3629: no overlong form, no surrogate). */
function isUtf8(path: string): boolean {
  for (const [run] of path.matchAll(/(?:%[89A-Fa-f][0-9A-Fa-f])+/g)) {
    try {
      decodeURIComponent(run);
    } catch {
      // decodeURIComponent throws URIError for exactly the sequences RFC 3629 rules out.
      return false;
    }
  }
  return true;
}
