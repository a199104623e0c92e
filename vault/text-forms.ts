/** The texts under which a value may turn up in a log. */

/** Below this many characters a fragment of base64 is as likely chance as secret. */
const MIN_FRAGMENT_CHARS = 8;

/** Every form once; the first is the value itself. */
export function textForms(value: Buffer): string[] {
  const raw = value.toString('utf8');
  const latin1 = value.toString('latin1');
  const percent = percentEncode(value);
  const forms = new Set([raw, latin1, percent, percent.toLowerCase() === percent ? percent : lowerHex(percent)]);
  forms.add(percent.replaceAll('%20', '+'));
  forms.add(JSON.stringify(raw).slice(1, -1));
  forms.add(JSON.stringify(raw).slice(1, -1).replaceAll('/', '\\/'));
  for (const base64 of base64Forms(value)) {
    forms.add(base64);
    forms.add(toUrlAlphabet(base64));
    forms.add(percentEncode(Buffer.from(base64, 'latin1')));
  }
  return [...forms];
}

/** Whole, without padding, and at the two other alignments that a value inside a longer text has. */
function base64Forms(value: Buffer): string[] {
  const whole = value.toString('base64');
  const unpadded = whole.replace(/=+$/, '');
  const inner = [0, 1, 2].map((shift) => innerBase64(value, shift)).filter((text) => text.length >= MIN_FRAGMENT_CHARS);
  return [whole, unpadded, ...inner];
}

/** The characters of base64 that depend on this value alone when `shift` bytes stand before it in its group of three. */
function innerBase64(value: Buffer, shift: number): string {
  const text = Buffer.concat([Buffer.alloc(shift), value]).toString('base64');
  const start = shift === 0 ? 0 : shift + 1;
  const wholeChars = Math.floor(((shift + value.length) * 8) / 6);
  return text.slice(start, wholeChars);
}

function toUrlAlphabet(base64: string): string {
  return base64.replaceAll('+', '-').replaceAll('/', '_');
}

/** RFC 3986 section 2.1 on bytes: everything but unreserved characters, upper-case digits. */
function percentEncode(value: Buffer): string {
  let out = '';
  for (const byte of value) {
    const char = String.fromCharCode(byte);
    out += /[A-Za-z0-9._~-]/.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return out;
}

function lowerHex(percent: string): string {
  return percent.replace(/%[0-9A-F]{2}/g, (match) => match.toLowerCase());
}
