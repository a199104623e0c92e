/** Text from outside, fit for a terminal. */

/** Control, format and line characters would act on the reader's screen; each becomes U+FFFD. Cut to `max` characters. */
export function plainText(text: string, max = 2000): string {
  const clean = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, '\u{FFFD}');
  return clean.length <= max ? clean : `${clean.slice(0, max)}…`;
}
