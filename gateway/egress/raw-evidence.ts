/** What a record keeps of a message that could not be read: its form, without the values that may be credentials (C8). */

/** First bytes of an unreadable message kept in its record. */
export const MAX_RAW = 256;

/** Lines whose values decide what a message means; they are the evidence, and hold no secret. */
const SHOWN = /^(?:host|content.length|transfer.encoding|connection|upgrade|expect|te|trailer)\s*$/i;

/**
 * Latin-1 text of the first bytes. In header lines other than those of framing and authority, and in query values and user
 * information, every run of token characters is one `*`: controls, spaces and separators, which made the message
 * unreadable, stay.
 */
export function rawEvidence(bytes: Buffer): string {
  const [first = '', ...rest] = bytes.toString('latin1', 0, MAX_RAW).split(/([\r\n]+)/);
  return withoutUserinfo(withoutQueryValues(first)) + rest.map(withoutValue).join('');
}

/** `user:password@` of an absolute URL or an authority, masked. */
export function withoutUserinfo(target: string): string {
  return target.replace(/(^|\/\/|\s)[^/?#@\s]+@/g, '$1*@');
}

function withoutQueryValues(line: string): string {
  // Up to the version, since a space inside a value may be what made the line unreadable.
  return line.replace(/\?.*?(?=\sHTTP\/|$)/, (query) =>
    query.replace(/=[^&;]*/g, (value) => `=${masked(value.slice(1))}`),
  );
}

/** Every second piece is a line end, which has no letters to mask. A line without a colon may continue a credential. */
function withoutValue(line: string): string {
  const colon = line.indexOf(':');
  if (colon > 0 && SHOWN.test(line.slice(0, colon))) return line;
  return line.slice(0, colon + 1) + masked(line.slice(colon + 1));
}

function masked(text: string): string {
  return text.replace(/[\w+/=.~%-]+/g, '*');
}
