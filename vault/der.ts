/** The DER encoder for certificates (X.690 section 10): only what an X.509 certificate of ours contains. */

const TAG_SEQUENCE = 0x30;
const TAG_SET = 0x31;
/** Last year that RFC 5280 section 4.1.2.5 wants written as UTCTime. */
const LAST_UTC_TIME_YEAR = 2049;

/** One tag, its definite length in the fewest bytes, its content. */
export function tlv(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([header(tag, content.length), content]);
}

export function sequence(...parts: readonly Uint8Array[]): Buffer {
  return tlv(TAG_SEQUENCE, ...parts);
}

export function set(...parts: readonly Uint8Array[]): Buffer {
  return tlv(TAG_SET, ...parts);
}

/** A non-negative INTEGER from big-endian bytes; leading zeros are reduced and the sign bit kept clear. */
export function unsignedInteger(bytes: Uint8Array): Buffer {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start += 1;
  const digits = bytes.subarray(start);
  const isSigned = ((digits[0] ?? 0) & 0x80) !== 0;
  return isSigned ? tlv(0x02, Buffer.of(0), digits) : tlv(0x02, digits);
}

export function boolean(value: boolean): Buffer {
  return tlv(0x01, Buffer.of(value ? 0xff : 0x00));
}

export function octetString(...parts: readonly Uint8Array[]): Buffer {
  return tlv(0x04, ...parts);
}

/** A BIT STRING; `unusedBits` of the last byte do not count. */
export function bitString(bytes: Uint8Array, unusedBits = 0): Buffer {
  return tlv(0x03, Buffer.of(unusedBits), bytes);
}

export function utf8String(text: string): Buffer {
  return tlv(0x0c, Buffer.from(text, 'utf8'));
}

/** Context-specific, constructed `[n]`. */
export function explicit(number: number, ...parts: readonly Uint8Array[]): Buffer {
  return tlv(0xa0 | number, ...parts);
}

/** Context-specific, primitive `[n] IMPLICIT`. */
export function implicit(number: number, bytes: Uint8Array): Buffer {
  return tlv(0x80 | number, bytes);
}

/** Dotted decimal, e.g. `2.5.29.17`. */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return tlv(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** UTCTime up to 2049, GeneralizedTime after (RFC 5280 section 4.1.2.5); whole seconds, `Z`. */
export function time(date: Date): Buffer {
  const digits = `${date.toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`;
  if (date.getUTCFullYear() > LAST_UTC_TIME_YEAR) return tlv(0x18, Buffer.from(digits, 'latin1'));
  return tlv(0x17, Buffer.from(digits.slice(2), 'latin1'));
}

function header(tag: number, length: number): Buffer {
  if (length < 0x80) return Buffer.of(tag, length);
  if (length < 0x100) return Buffer.of(tag, 0x81, length);
  if (length < 0x10000) return Buffer.of(tag, 0x82, length >> 8, length & 0xff);
  throw new RangeError('a certificate of ours never has a field of 64 KiB');
}

function base128(value: number): number[] {
  const digits = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) digits.unshift((rest % 128) | 0x80);
  return digits;
}
