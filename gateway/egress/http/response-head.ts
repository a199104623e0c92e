/** Strict parser of an HTTP/1.1 response head (RFC 9112 §4–6): what an upstream sends is untrusted too. */
import { at, bytesEqual, CR, foldEquals, LF, SP, text, VALUE } from './bytes.ts';
import { contentLength, isExactlyChunked } from './framing.ts';
import { FAILED, H, HeaderBlock, INCOMPLETE } from './header-block.ts';

const VERSION_1 = Buffer.from('HTTP/1.');

/** How the body of a response ends (RFC 9112 §6.3). */
export type ResponseFraming = 'none' | 'length' | 'chunked' | 'close';

/** The response head parsed last; offsets as in RequestHead. */
export class ResponseHead {
  readonly headers = new HeaderBlock();
  start = 0;
  end = 0;
  status = 0;
  /** 0 or 1. */
  minor = 1;
  contentLength = -1;
  chunked = false;
  /** The upstream keeps the connection after this response. */
  keepAlive = true;
  /** Some line must be cut before the head goes to the client. */
  hasHop = false;
  /** Lower-case names that the Connection header lists besides `keep-alive` and `close`; their lines are cut as well. */
  connectionOptions: ReadonlySet<string> = NONE;
  failure = '';

  /** Returns the end offset, INCOMPLETE (0) or FAILED (-1, see `failure`). */
  parse(buf: Buffer, start: number, end: number): number {
    this.start = start;
    const lines = this.#statusLine(buf, start, end);
    if (lines <= 0) return lines;
    const stop = this.headers.parse(buf, lines, end);
    if (stop === INCOMPLETE) return INCOMPLETE;
    if (stop === FAILED) return this.#fail(this.headers.failure?.reason ?? 'bad header');
    this.end = stop;
    return this.#meaning(buf) ? stop : FAILED;
  }

  /** RFC 9112 §6.3 in its order. */
  framing(requestMethod: string): ResponseFraming {
    if (requestMethod === 'HEAD' || this.status === 204 || this.status === 304 || this.status < 200) return 'none';
    if (this.chunked) return 'chunked';
    if (this.contentLength === 0) return 'none';
    return this.contentLength > 0 ? 'length' : 'close';
  }

  #statusLine(buf: Buffer, start: number, end: number): number {
    if (end - start < 13)
      return end - start >= 7 && !bytesEqual(buf, start, start + 7, VERSION_1) ? this.#fail('not HTTP/1') : INCOMPLETE;
    if (!bytesEqual(buf, start, start + 7, VERSION_1)) return this.#fail('not HTTP/1');
    const minor = at(buf, start + 7) - 48;
    if ((minor !== 0 && minor !== 1) || at(buf, start + 8) !== SP) return this.#fail('unknown HTTP version');
    let status = 0;
    for (let pos = start + 9; pos < start + 12; pos++) {
      const digit = at(buf, pos) - 48;
      if (digit < 0 || digit > 9) return this.#fail('malformed status');
      status = status * 10 + digit;
    }
    if (status < 100) return this.#fail('malformed status');
    this.status = status;
    this.minor = minor;
    this.keepAlive = minor === 1;
    let pos = start + 12;
    if (at(buf, pos) !== SP && at(buf, pos) !== CR) return this.#fail('malformed status line');
    while (pos < end && VALUE[at(buf, pos)] === 1) pos++;
    if (pos + 1 >= end) return INCOMPLETE;
    return at(buf, pos) === CR && at(buf, pos + 1) === LF ? pos + 2 : this.#fail('malformed status line');
  }

  #meaning(buf: Buffer): boolean {
    const { headers } = this;
    this.contentLength = -1;
    this.chunked = false;
    this.hasHop = false;
    this.connectionOptions = NONE;
    for (let i = 0; i < headers.count; i++) {
      const id = headers.id[i];
      if (id === H.OTHER) continue;
      if (!this.#line(buf, i, id ?? 0)) return false;
    }
    if (this.chunked && this.contentLength >= 0) {
      this.failure = 'Content-Length and Transfer-Encoding in one response';
      return false;
    }
    // RFC 9112 §6.1: no Transfer-Encoding in HTTP/1.0. A 204 that announces a body may send one all the same.
    if (this.chunked && this.minor === 0) this.keepAlive = false;
    if (this.status === 204 && (this.chunked || this.contentLength > 0)) this.keepAlive = false;
    return true;
  }

  #line(buf: Buffer, i: number, id: number): boolean {
    const start = this.headers.valueStart[i] ?? 0;
    const end = this.headers.valueEnd[i] ?? 0;
    if (id === H.CONTENT_LENGTH) {
      const length = contentLength(buf, start, end);
      if (length < 0 || this.contentLength >= 0) {
        this.failure = 'a malformed or repeated Content-Length';
        return false;
      }
      this.contentLength = length;
    } else if (id === H.TRANSFER_ENCODING) {
      if (this.chunked || !isExactlyChunked(buf, start, end)) {
        this.failure = 'a Transfer-Encoding other than one "chunked"';
        return false;
      }
      this.chunked = true;
    } else if (id === H.CONNECTION) {
      this.hasHop = true;
      if (foldEquals(buf, start, end, 'keep-alive')) this.keepAlive = true;
      else this.#connection(text(buf, start, end));
    } else if (id === H.HOP || id === H.PROXY_AUTHORIZATION || id === H.UPGRADE || id === H.ALT_SVC) {
      this.hasHop = true;
    }
    return true;
  }

  #connection(value: string): void {
    const options = value
      .toLowerCase()
      .split(',')
      .map((option) => option.trim());
    if (options.includes('close')) this.keepAlive = false;
    this.connectionOptions = new Set([...this.connectionOptions, ...options]);
  }

  #fail(why: string): number {
    this.failure = why;
    return FAILED;
  }
}

const NONE: ReadonlySet<string> = new Set();
