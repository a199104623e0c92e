/** RFC 8785 canonical JSON, and the ASCII line form a record has on disk. */
import { GatewayError } from '../errors.ts';

/** Deepest nesting of a record; a parsed line that nests deeper is not one of ours. */
export const maxJsonDepth = 16;

/**
 * RFC 8785: keys sorted by UTF-16 code units, numbers as ECMAScript prints them, the shortest escapes.
 * @throws GatewayError `GATEWAY_AUDIT_FAILED` for what I-JSON cannot hold: lone surrogates, NaN, infinities, other types
 */
export function canonicalJson(value: unknown, depth = 0): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return canonicalString(value);
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return String(value);
    throw notCanonical('a number is not finite');
  }
  if (typeof value !== 'object') throw notCanonical(`a ${typeof value} has no JSON form`);
  if (depth >= maxJsonDepth) throw notCanonical('nested too deep');
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item, depth + 1)).join(',')}]`;
  return `{${canonicalMembers(value, depth).join(',')}}`;
}

/** The `"key":value` texts of an object in canonical order. */
export function canonicalMembers(value: object, depth = 0): string[] {
  return Object.keys(value)
    .sort()
    .map((key) => {
      // Own enumerable key of the object: reading it by index is sound, also for `__proto__` as JSON.parse makes it.
      const member = (value as Record<string, unknown>)[key];
      return `${canonicalString(key)}:${canonicalJson(member, depth + 1)}`;
    });
}

/**
 * The line form of a canonical text: everything outside printable ASCII becomes `\uXXXX`.
 * A terminal that shows the raw line then never meets DEL, C1 controls, U+2028, bidi overrides or look-alikes (BAD-INPUT O4),
 * and any JSON parser still reads the same values.
 */
export function asciiLine(canonical: string): string {
  return canonical.replace(beyondAscii, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Lone surrogates have no UTF-8 form: they become U+FFFD, as a decoder would have made them. */
export function wellFormed(text: string): string {
  return text.replace(loneSurrogate, '\ufffd');
}

/** Printable ASCII without `"` and `\\`: its own JSON text. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
const beyondAscii = /[\x7f-\uffff]/g;
const loneSurrogate = /\p{Surrogate}/gu;

function canonicalString(text: string): string {
  if (plain.test(text)) return `"${text}"`;
  if (text.search(loneSurrogate) !== -1) throw notCanonical('a string holds a lone surrogate');
  // JSON.stringify escapes exactly what RFC 8785 section 3.2.2.2 asks for once lone surrogates are out.
  return JSON.stringify(text);
}

function notCanonical(why: string): GatewayError {
  return new GatewayError('GATEWAY_AUDIT_FAILED', `Cannot write canonical JSON: ${why}`);
}
