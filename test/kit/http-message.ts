/** A small HTTP/1.1 reader for tests: deliberately not the product's parser, and tolerant, so that it shows what really came. */

/** Header lines in the order and spelling of the wire. */
export type HeaderLines = readonly (readonly [name: string, value: string])[];

export interface MessageHead {
  /** The first line without CRLF. */
  readonly start: string;
  readonly headers: HeaderLines;
  /** The head with its empty line, byte for byte (Latin-1). */
  readonly raw: string;
  readonly sizeBytes: number;
}

/** How the end of a body is found. */
export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly sizeBytes: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'close' };

/** The head at the start of `bytes`, or null while its empty line has not come. Latin-1, so no byte is lost. */
export function readHead(bytes: Buffer): MessageHead | null {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const [start = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n');
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':');
    return colon < 0 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  return { start, headers, raw: bytes.toString('latin1', 0, end + 4), sizeBytes: end + 4 };
}

/** Every value of a header, compared without case. */
export function headerValues(headers: HeaderLines, name: string): string[] {
  const wanted = name.toLowerCase();
  return headers.filter(([key]) => key.toLowerCase() === wanted).map(([, value]) => value);
}

/** The first value of a header, or undefined. */
export function header(headers: HeaderLines, name: string): string | undefined {
  return headerValues(headers, name)[0];
}

/** Framing of a request: none unless it says so. */
export function requestFraming(head: MessageHead): Framing {
  return declaredFraming(head) ?? { kind: 'none' };
}

/** Framing of a response to `method` (RFC 9112 section 6.3). */
export function responseFraming(head: MessageHead, method: string): Framing {
  const status = statusOf(head);
  const isBodiless = method === 'HEAD' || status < 200 || status === 204 || status === 304;
  if (isBodiless || (method === 'CONNECT' && status < 300)) return { kind: 'none' };
  return declaredFraming(head) ?? { kind: 'close' };
}

/** The status of a response head; 0 when the line holds none. */
export function statusOf(head: MessageHead): number {
  return Number(/^HTTP\/\d\.\d (\d{3})/.exec(head.start)?.[1] ?? 0);
}

/** The decoded body and how many bytes it took, or null while it is incomplete. `ended`: no more bytes will come. */
export function readBody(bytes: Buffer, framing: Framing, ended: boolean): { body: Buffer; sizeBytes: number } | null {
  switch (framing.kind) {
    case 'none':
      return { body: Buffer.alloc(0), sizeBytes: 0 };
    case 'length':
      if (bytes.length < framing.sizeBytes) return null;
      return { body: Buffer.from(bytes.subarray(0, framing.sizeBytes)), sizeBytes: framing.sizeBytes };
    case 'chunked':
      return readChunks(bytes);
    case 'close':
      return ended ? { body: Buffer.from(bytes), sizeBytes: bytes.length } : null;
  }
}

function declaredFraming(head: MessageHead): Framing | null {
  const coding = header(head.headers, 'transfer-encoding');
  if (coding?.toLowerCase().includes('chunked')) return { kind: 'chunked' };
  const length = header(head.headers, 'content-length');
  return length === undefined ? null : { kind: 'length', sizeBytes: Number(length) };
}

function readChunks(bytes: Buffer): { body: Buffer; sizeBytes: number } | null {
  const parts: Buffer[] = [];
  let at = 0;
  for (;;) {
    const line = bytes.indexOf('\r\n', at);
    if (line < 0) return null;
    const size = Number.parseInt(bytes.toString('latin1', at, line), 16);
    at = line + 2;
    if (!(size > 0)) break;
    if (bytes.length < at + size + 2) return null;
    parts.push(bytes.subarray(at, at + size));
    at += size + 2;
  }
  // Trailer lines, up to the empty one.
  for (;;) {
    const line = bytes.indexOf('\r\n', at);
    if (line < 0) return null;
    const isEmpty = line === at;
    at = line + 2;
    if (isEmpty) return { body: Buffer.concat(parts), sizeBytes: at };
  }
}
