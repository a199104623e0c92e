/** PEM text as RFC 7468 writes it. */

/** RFC 7468 section 2: exactly 64 characters a line but the last. */
const LINE_CHARS = 64;

/** Wraps DER. A base64 length that is a multiple of 64 must not leave an empty line: OpenSSL refuses such a file. */
export function toPem(label: string, der: Uint8Array): string {
  const base64 = Buffer.from(der.buffer, der.byteOffset, der.byteLength).toString('base64');
  const lines: string[] = [];
  for (let at = 0; at < base64.length; at += LINE_CHARS) lines.push(base64.slice(at, at + LINE_CHARS));
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}
