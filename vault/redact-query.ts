/** A query as the audit log may keep it: which keys were there, never what they held. */
import { PLACEHOLDER_PREFIX } from './placeholders.ts';
import type { Redactor } from './types.ts';

/** Bytes of the longest result: an audit record has room for keys, not for a payload. */
export const MAX_REDACTED_QUERY_BYTES = 1_024;
/** A key longer than this is data. */
const MAX_KEY_CHARS = 64;
/** ASCII, so that an audit record with a query stays on the writer's fast path. */
const HIDDEN_VALUE = '*';
const HIDDEN_KEY = '[redacted]';
const CUT = '&...';

/** Keeps the keys, hides every value; a key that holds a secret or a placeholder is hidden too. `query` comes without `?`. */
export function redactQuery(query: string, redactor: Redactor): string {
  let out = '';
  let room = MAX_REDACTED_QUERY_BYTES - Buffer.byteLength(CUT);
  let start = 0;
  while (start <= query.length) {
    const end = endOfPair(query, start);
    const pair = (start === 0 ? '' : '&') + redactPair(query.slice(start, end), redactor);
    room -= Buffer.byteLength(pair);
    if (room < 0) return out + CUT;
    out += pair;
    start = end + 1;
  }
  return out;
}

function endOfPair(query: string, start: number): number {
  const end = query.indexOf('&', start);
  return end < 0 ? query.length : end;
}

function redactPair(pair: string, redactor: Redactor): string {
  const equals = pair.indexOf('=');
  const key = equals < 0 ? pair : pair.slice(0, equals);
  return equals < 0 ? redactKey(key, redactor) : `${redactKey(key, redactor)}=${HIDDEN_VALUE}`;
}

function redactKey(key: string, redactor: Redactor): string {
  if (key.length > MAX_KEY_CHARS) return HIDDEN_KEY;
  const decoded = decode(key);
  const isSafe = redactor.redact(key) === key && redactor.redact(decoded) === decoded && !holdsPlaceholder(decoded);
  return isSafe ? key : HIDDEN_KEY;
}

function holdsPlaceholder(key: string): boolean {
  return key.toLowerCase().includes(PLACEHOLDER_PREFIX);
}

function decode(key: string): string {
  try {
    return decodeURIComponent(key.replaceAll('+', ' '));
  } catch {
    // Not valid percent-encoding of UTF-8: the raw form is all there is to compare.
    return key;
  }
}
