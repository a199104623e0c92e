/** Reads the server name of a TLS ClientHello (RFC 8446 §4.1.2, RFC 6066 §3) before any key is chosen or leaf minted. */

export type ClientHello =
  /** More bytes are needed. */
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'malformed'; readonly reason: string }
  /** `serverName` as sent, or null; not canonical yet. */
  | { readonly kind: 'hello'; readonly serverName: string | null };

const INCOMPLETE: ClientHello = { kind: 'incomplete' };
const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const EXTENSION_SERVER_NAME = 0;
/** RFC 8446 §5.1: a record's fragment is at most 2^14 bytes. */
const MAX_RECORD = 16384;

/** `bytes` is everything received so far; `limit` bounds the reassembled message. */
export function parseClientHello(bytes: Buffer, limit: number): ClientHello {
  const message = reassemble(bytes, limit);
  if (message === null) return INCOMPLETE;
  if (typeof message === 'string') return malformed(message);
  return new HelloReader(message).read();
}

/** Joins the handshake message over records: a hello may be split at any byte (T4). */
function reassemble(bytes: Buffer, limit: number): Buffer | string | null {
  const parts: Buffer[] = [];
  let have = 0;
  let need = -1;
  let pos = 0;
  while (need < 0 || have < need) {
    if (bytes.length - pos < 5) return pos > limit ? 'longer than the limit' : null;
    if (bytes[pos] !== HANDSHAKE || bytes[pos + 1] !== 3) return 'not a TLS handshake record';
    const length = bytes.readUInt16BE(pos + 3);
    if (length === 0 || length > MAX_RECORD) return 'a record of an impossible length';
    const fragment = bytes.subarray(pos + 5, pos + 5 + length);
    parts.push(fragment);
    have += fragment.length;
    if (need < 0 && have >= 4) {
      const head = Buffer.concat(parts);
      if (head[0] !== CLIENT_HELLO) return 'not a ClientHello';
      need = 4 + head.readUIntBE(1, 3);
      if (need > limit) return 'longer than the limit';
    }
    if (fragment.length < length && (need < 0 || have < need)) return null;
    pos += 5 + length;
  }
  return Buffer.concat(parts).subarray(4, need);
}

/** A cursor over the message; every length is checked before it is used. */
class HelloReader {
  readonly #bytes: Buffer;
  #pos = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  read(): ClientHello {
    // legacy_version, random, session id, cipher suites, compression methods
    if (!this.#skip(34) || !this.#skipVector(1) || !this.#skipVector(2) || !this.#skipVector(1))
      return malformed('cut short');
    if (this.#pos === this.#bytes.length) return { kind: 'hello', serverName: null };
    const total = this.#number(2);
    if (total < 0 || this.#pos + total !== this.#bytes.length) return malformed('extensions of the wrong length');
    let serverName: string | null = null;
    let seen = false;
    while (this.#pos < this.#bytes.length) {
      const type = this.#number(2);
      const length = this.#number(2);
      const start = this.#pos;
      if (type < 0 || length < 0 || !this.#skip(length)) return malformed('an extension of the wrong length');
      if (type !== EXTENSION_SERVER_NAME) continue;
      if (seen) return malformed('two server names');
      seen = true;
      const name = serverNameOf(this.#bytes.subarray(start, start + length));
      if (name === null) return malformed('a malformed server name');
      serverName = name;
    }
    return { kind: 'hello', serverName };
  }

  #number(size: 1 | 2): number {
    if (this.#pos + size > this.#bytes.length) return -1;
    const value = this.#bytes.readUIntBE(this.#pos, size);
    this.#pos += size;
    return value;
  }

  #skip(count: number): boolean {
    this.#pos += count;
    return this.#pos <= this.#bytes.length;
  }

  #skipVector(size: 1 | 2): boolean {
    const length = this.#number(size);
    return length >= 0 && this.#skip(length);
  }
}

/** ServerNameList with exactly one host_name of at least one byte; anything else is null. */
function serverNameOf(data: Buffer): string | null {
  if (data.length < 6 || data.readUInt16BE(0) !== data.length - 2 || data[2] !== 0) return null;
  const length = data.readUInt16BE(3);
  return length > 0 && length === data.length - 5 ? data.toString('latin1', 5) : null;
}

function malformed(reason: string): ClientHello {
  return { kind: 'malformed', reason };
}
