/** Where a body ends: Content-Length and Transfer-Encoding values, read as strictly as RFC 9112 §6 allows. */
import { at, foldEquals } from './bytes.ts';

/** Fifteen digits stay below 2^53, so the number is exact. */
const MAX_LENGTH_DIGITS = 15;

/** A Content-Length value; -1 when it is anything but 1–15 plain digits (`+4`, `0x5`, `5,5`, empty …). */
export function contentLength(buf: Uint8Array, start: number, end: number): number {
  if (end === start || end - start > MAX_LENGTH_DIGITS) return -1;
  let value = 0;
  for (let pos = start; pos < end; pos++) {
    const digit = at(buf, pos) - 48;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
  }
  return value;
}

/** The value is `chunked` and nothing else: `gzip, chunked`, `chunked, chunked` and `xchunked` are refused. */
export function isExactlyChunked(buf: Uint8Array, start: number, end: number): boolean {
  return foldEquals(buf, start, end, 'chunked');
}
