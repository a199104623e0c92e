/** Byte classes of RFC 9110 §5.5–5.6 and small comparisons that allocate nothing. */

export const CR = 13;
export const LF = 10;
export const SP = 32;
export const HTAB = 9;
export const COLON = 58;

/** `tchar` of RFC 9110 §5.6.2. */
export const TOKEN: Uint8Array = table((c) => /[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(String.fromCharCode(c)));

/** `field-vchar`, SP and HTAB: everything else in a value is an attack or a fault (bare CR, bare LF, NUL, C0 controls, DEL). */
export const VALUE: Uint8Array = table((c) => c === HTAB || (c >= SP && c !== 127));

/** Printable ASCII without space: what a request target may be made of. */
export const TARGET: Uint8Array = table((c) => c > SP && c < 127);

/** Lower-case form with `_` as `-`: CGI and WSGI upstreams read `Transfer_Encoding` as `Transfer-Encoding`, so both are one name to us. */
const FOLD: Uint8Array = Uint8Array.from({ length: 256 }, (_, c) => (c >= 65 && c <= 90 ? c + 32 : c === 95 ? 45 : c));

/** Set by {@link marked} for `_`, which every stand-in of a credential holds and hardly any other header value. */
export const UNDERSCORE = 2;

/** The table with `UNDERSCORE` added to what it accepts: one pass both checks and tells whether to look closer. */
export function marked(accepted: Uint8Array): Uint8Array {
  return accepted.map((accepts, c) => (accepts === 1 && c === 95 ? 1 | UNDERSCORE : accepts));
}

/** The byte at `pos`. The caller keeps `pos` below the length; outside it would be undefined, which no table accepts. */
export function at(buf: Uint8Array, pos: number): number {
  return buf[pos] as number; // in bounds by the caller's loop condition
}

/** `buf[start..end)` equals `lower` when case is folded and `_` counts as `-`. `lower` is lower-case ASCII. */
export function foldEquals(buf: Uint8Array, start: number, end: number, lower: string): boolean {
  return end - start === lower.length && foldStartsWith(buf, start, end, lower);
}

/** `buf[start..end)` begins with `lower` under the same folding. */
export function foldStartsWith(buf: Uint8Array, start: number, end: number, lower: string): boolean {
  if (end - start < lower.length) return false;
  for (let i = 0; i < lower.length; i++) {
    if (FOLD[at(buf, start + i)] !== lower.charCodeAt(i)) return false;
  }
  return true;
}

/** `buf[start..end)` equals `other` byte for byte. */
export function bytesEqual(buf: Uint8Array, start: number, end: number, other: Uint8Array): boolean {
  if (end - start !== other.length) return false;
  for (let i = 0; i < other.length; i++) if (buf[start + i] !== other[i]) return false;
  return true;
}

/** Up to here a loop beats the call into the runtime. */
const SHORT_COPY = 192;

/** Copies `from[start..end)` to `out` at `at` and returns the position behind it. The caller has made room. */
export function copyBytes(out: Buffer, at: number, from: Buffer, start: number, end: number): number {
  const length = end - start;
  if (length > SHORT_COPY) return at + from.copy(out, at, start, end);
  for (let i = 0; i < length; i++) out[at + i] = from[start + i] ?? 0;
  return at + length;
}

/** Bytes as text, one character a byte: what came in is what is shown and sent. */
export function text(buf: Buffer, start: number | undefined, end: number | undefined): string {
  return buf.toString('latin1', start, end);
}

function table(has: (c: number) => boolean): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, c) => (has(c) ? 1 : 0));
}
