/** The smallest HTTP/1.1 response reader a load generator needs: one answer at a time, framed by Content-Length only. */

const HEAD_END = Buffer.from('\r\n\r\n');
const MAX_HEAD_BYTES = 16 * 1024;
const MAX_BODY_BYTES = 1024 * 1024;

/** One complete answer. `body` is only kept by readers made with `keepBody`. */
export interface Answer {
  readonly status: number;
  readonly bodyBytes: number;
  readonly body: Buffer;
}

const NO_BODY = Buffer.alloc(0);

/**
 * Takes the bytes of one connection, gives each answer when its last byte is in.
 * Not for untrusted use: no chunked coding, no pipelining, no 1xx. It throws on those, so a wrong figure is never counted.
 */
export class ResponseReader {
  readonly #keepBody: boolean;
  #held: Buffer = NO_BODY;
  #status = 0;
  #bodyBytes = 0;
  #missing = -1;
  #parts: Buffer[] = [];

  constructor(options: { readonly keepBody?: boolean } = {}) {
    this.#keepBody = options.keepBody === true;
  }

  /** The answer that `chunk` completed, or null. */
  push(chunk: Buffer): Answer | null {
    if (this.#missing >= 0) return this.#body(chunk);
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const end = bytes.indexOf(HEAD_END);
    if (end < 0) {
      if (bytes.length > MAX_HEAD_BYTES) throw new Error('Cannot read answer: head too long');
      // A copy, since the chunk may be a view of a buffer that is used again.
      this.#held = Buffer.from(bytes);
      return null;
    }
    this.#held = NO_BODY;
    this.#status = statusOf(bytes);
    this.#bodyBytes = contentLength(bytes, end);
    this.#missing = this.#bodyBytes;
    return this.#body(bytes.subarray(end + HEAD_END.length));
  }

  #body(bytes: Buffer): Answer | null {
    if (bytes.length > this.#missing) throw new Error('Cannot read answer: bytes after its end');
    this.#missing -= bytes.length;
    if (this.#keepBody) this.#parts.push(Buffer.from(bytes));
    if (this.#missing > 0) return null;
    this.#missing = -1;
    const body = this.#keepBody ? Buffer.concat(this.#parts) : NO_BODY;
    this.#parts = [];
    return { status: this.#status, bodyBytes: this.#bodyBytes, body };
  }
}

function statusOf(bytes: Buffer): number {
  const line = bytes.toString('latin1', 0, 12);
  const status = /^HTTP\/1\.[01] ([2-5][0-9]{2})$/.exec(line)?.[1];
  if (status === undefined) throw new Error('Cannot read answer: not an HTTP/1 status line');
  return Number(status);
}

/** Looks for the line by its first letter only after each LF: cheap, and no string for the whole head is made. */
function contentLength(bytes: Buffer, end: number): number {
  for (let at = bytes.indexOf(10); at >= 0 && at < end; at = bytes.indexOf(10, at + 1)) {
    const letter = (bytes[at + 1] ?? 0) | 0x20;
    if (letter === 0x74 && /^transfer-encoding:/i.test(bytes.toString('latin1', at + 1, at + 19))) {
      throw new Error('Cannot read answer: Transfer-Encoding is not supported here');
    }
    if (letter !== 0x63 || bytes[at + 8] !== 0x2d) continue;
    const line = bytes.toString('latin1', at + 1, Math.min(end, at + 40));
    const value = /^content-length: *([0-9]{1,9})[ \t]*(?:\r|$)/i.exec(line)?.[1];
    if (value === undefined) continue;
    if (Number(value) > MAX_BODY_BYTES) throw new Error('Cannot read answer: body too long');
    return Number(value);
  }
  throw new Error('Cannot read answer: no Content-Length');
}
