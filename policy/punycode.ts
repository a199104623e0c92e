/** Punycode (RFC 3492), only as far as telling a valid A-label from a forged one needs. */

const BASE = 36;
const T_MIN = 1;
const T_MAX = 26;
const SKEW = 38;
const DAMP = 700;
const INITIAL_BIAS = 72;
const INITIAL_N = 128;
const MAX_CODE_POINT = 0x10ffff;

/**
 * The Unicode text of a lower-case label after its `xn--`, or null when it is not punycode of a label with at least one
 * non-ASCII character. RFC 3492 section 6.2; the encoding is injective, so no second spelling of a text is accepted.
 */
export function decodePunycode(encoded: string): string | null {
  const delimiter = encoded.lastIndexOf('-');
  const output = delimiter > 0 ? Array.from(encoded.slice(0, delimiter), (char) => char.charCodeAt(0)) : [];
  let at = delimiter > 0 ? delimiter + 1 : 0;
  if (at === encoded.length) {
    return null;
  }
  let codePoint = INITIAL_N;
  let position = 0;
  let bias = INITIAL_BIAS;
  while (at < encoded.length) {
    const start = position;
    let weight = 1;
    for (let k = BASE; ; k += BASE) {
      const digit = digitOf(encoded.charCodeAt(at));
      at += 1;
      if (digit < 0) {
        return null;
      }
      position += digit * weight;
      const threshold = Math.min(Math.max(k - bias, T_MIN), T_MAX);
      if (digit < threshold) {
        break;
      }
      weight *= BASE - threshold;
      // A label has at most 63 characters, so numbers stay far below 2^53 only while they stay below this.
      if (position > 0x7fffffff || weight > 0x7fffffff) {
        return null;
      }
    }
    const length = output.length + 1;
    bias = adapt(position - start, length, start === 0);
    codePoint += Math.floor(position / length);
    if (codePoint > MAX_CODE_POINT || (codePoint >= 0xd800 && codePoint <= 0xdfff)) {
      return null;
    }
    position %= length;
    output.splice(position, 0, codePoint);
    position += 1;
  }
  return String.fromCodePoint(...output);
}

function digitOf(code: number): number {
  if (code >= 97 && code <= 122) {
    return code - 97;
  }
  return code >= 48 && code <= 57 ? code - 22 : -1;
}

/** RFC 3492 section 6.1. */
function adapt(delta: number, length: number, isFirst: boolean): number {
  let rest = isFirst ? Math.floor(delta / DAMP) : delta >> 1;
  rest += Math.floor(rest / length);
  let k = 0;
  while (rest > ((BASE - T_MIN) * T_MAX) >> 1) {
    rest = Math.floor(rest / (BASE - T_MIN));
    k += BASE;
  }
  return k + Math.floor(((BASE - T_MIN + 1) * rest) / (rest + SKEW));
}
