/** Strict parser of an HTTP/1.1 request head (RFC 9112 §3, §5, §6.1): one pass, by offsets, or a reason why not. */
import {
  at,
  bytesEqual,
  CR,
  foldEquals,
  foldStartsWith,
  LF,
  marked,
  SP,
  TARGET,
  TOKEN,
  text,
  UNDERSCORE,
} from './bytes.ts';
import { contentLength, isExactlyChunked } from './framing.ts';
import type { HeadFailure } from './head-failure.ts';
import { fail } from './head-failure.ts';
import { FAILED, H, HeaderBlock, INCOMPLETE } from './header-block.ts';

/** Longest method token read: the longest registered one has 17 characters. */
const MAX_METHOD = 32;

const MARKED_TARGET = marked(TARGET);

const VERSION_1 = Buffer.from('HTTP/1.');

/** The request head parsed last. Offsets point into the buffer given to `parse`, which must live as long as they are used. */
export class RequestHead {
  readonly headers = new HeaderBlock();
  buf: Buffer = Buffer.alloc(0);
  start = 0;
  /** Offset behind the empty line: where the body begins. */
  end = 0;
  method = '';
  targetStart = 0;
  targetEnd = 0;
  /** 0 or 1. */
  minor = 1;
  /** -1 = none given. */
  contentLength = -1;
  chunked = false;
  /** The client wants the connection kept (RFC 9112 §9.3). */
  keepAlive = true;
  /** Index of the Host line, or -1 (HTTP/1.0 only). */
  host = -1;
  expectsContinue = false;
  /** Index of the Upgrade line, or -1. */
  upgrade = -1;
  failure: HeadFailure | null = null;

  /** Returns the end offset, INCOMPLETE (0) or FAILED (-1, see `failure`). */
  parse(buf: Buffer, start: number, end: number): number {
    this.buf = buf;
    this.start = start;
    this.failure = null;
    const lines = this.#requestLine(buf, start, end);
    if (lines <= 0) return lines;
    const stop = this.headers.parse(buf, lines, end);
    if (stop === INCOMPLETE) return INCOMPLETE;
    if (stop === FAILED) {
      this.failure = this.headers.failure;
      return FAILED;
    }
    this.end = stop;
    return this.#meaning(buf) ? stop : FAILED;
  }

  /** A `_` stands in the target or in some header value. */
  get hasUnderscore(): boolean {
    return this.#targetHasUnderscore || this.headers.hasUnderscore;
  }
  #targetHasUnderscore = false;

  target(): string {
    return text(this.buf, this.targetStart, this.targetEnd);
  }

  /** True when a line's name is one the Connection header lists (RFC 9110 §7.6.1); those lines go no further. */
  isConnectionOption(index: number): boolean {
    const { headers, buf } = this;
    return this.#options?.has(text(buf, headers.nameStart[index], headers.nameEnd[index]).toLowerCase()) === true;
  }

  /** The Connection header lists something besides `keep-alive` and `close`, so lines have to be compared with it. */
  get hasConnectionOptions(): boolean {
    return this.#options !== null;
  }

  /** Taken apart once: anew for each line, a list of thousands would cost a second. */
  #options: Set<string> | null = null;

  #requestLine(buf: Buffer, start: number, end: number): number {
    let pos = start;
    const methodLimit = Math.min(end, start + MAX_METHOD + 1);
    while (pos < methodLimit && TOKEN[at(buf, pos)] === 1) pos++;
    if (pos === methodLimit) return pos === end ? INCOMPLETE : this.#fail(400, 'method', 'The method is too long.');
    if (pos === start || at(buf, pos) !== SP) {
      return this.#fail(400, 'request_line', 'The first bytes are not an HTTP request line.');
    }
    this.method = knownMethod(buf, start, pos);
    this.targetStart = ++pos;
    let seen = 0;
    for (; pos < end; pos++) {
      const flags = MARKED_TARGET[at(buf, pos)] ?? 0;
      if (flags === 0) break;
      seen |= flags;
    }
    this.#targetHasUnderscore = (seen & UNDERSCORE) !== 0;
    if (pos >= end) return INCOMPLETE;
    if (at(buf, pos) !== SP || pos === this.targetStart) {
      return this.#fail(
        400,
        'request_target',
        'The request target holds a byte that must not be there, or the version is missing.',
      );
    }
    this.targetEnd = pos++;
    if (pos + 10 > end) return this.#versionSoFar(buf, pos, end);
    if (!bytesEqual(buf, pos, pos + 7, VERSION_1)) return this.#badVersion(buf, pos);
    const minor = at(buf, pos + 7) - 48;
    if (minor !== 0 && minor !== 1)
      return this.#fail(505, 'http_version', 'Only HTTP/1.1 and HTTP/1.0 are spoken here.');
    if (at(buf, pos + 8) !== CR || at(buf, pos + 9) !== LF) {
      return this.#fail(400, 'request_line', 'The request line does not end in CRLF after the version.');
    }
    this.minor = minor;
    return pos + 10;
  }

  /** An incomplete line is still refused as soon as it cannot become right, so that HTTP/0.9 does not wait for a time-out. */
  #versionSoFar(buf: Buffer, pos: number, end: number): number {
    const got = text(buf, pos, end);
    return 'HTTP/1.'.startsWith(got.slice(0, 7)) && !got.includes('\n') ? INCOMPLETE : this.#badVersion(buf, pos);
  }

  #badVersion(buf: Buffer, pos: number): number {
    return foldStartsWith(buf, pos, buf.length, 'http/')
      ? this.#fail(505, 'http_version', 'Only HTTP/1.1 and HTTP/1.0 are spoken here.')
      : this.#fail(400, 'request_line', 'The request line has no HTTP version.');
  }

  /** What the lines mean together: host, framing, persistence. False = refused. */
  #meaning(buf: Buffer): boolean {
    const { headers } = this;
    this.contentLength = -1;
    this.chunked = false;
    this.keepAlive = this.minor === 1;
    this.host = -1;
    this.expectsContinue = false;
    this.upgrade = -1;
    this.#options = null;
    for (let i = 0; i < headers.count; i++) {
      const id = headers.id[i];
      if (id === H.OTHER) continue;
      if (!this.#line(buf, i, id ?? 0)) return false;
    }
    if (this.host < 0 && this.minor === 1)
      return this.#refuse('host_missing', 'HTTP/1.1 needs exactly one Host header.');
    if (this.chunked && this.contentLength >= 0) {
      return this.#refuse('length_and_chunked', 'Content-Length and Transfer-Encoding stand in one request.');
    }
    if (this.chunked && this.minor === 0)
      return this.#refuse('transfer_encoding', 'HTTP/1.0 has no Transfer-Encoding.');
    return true;
  }

  #line(buf: Buffer, i: number, id: number): boolean {
    const { headers } = this;
    const start = headers.valueStart[i] ?? 0;
    const end = headers.valueEnd[i] ?? 0;
    if (id <= H.UPGRADE && this.#hasUnderscore(buf, i)) {
      return this.#refuse('header_name', 'A header that frames the message is spelled with an underscore.');
    }
    if (id === H.HOST) {
      if (this.host >= 0) return this.#refuse('host_repeated', 'The request has more than one Host header.');
      this.host = i;
    } else if (id === H.CONTENT_LENGTH) {
      if (this.contentLength >= 0)
        return this.#refuse('length_repeated', 'The request has more than one Content-Length.');
      this.contentLength = contentLength(buf, start, end);
      if (this.contentLength < 0)
        return this.#refuse('length_malformed', 'Content-Length is not a plain decimal number.');
    } else if (id === H.TRANSFER_ENCODING) {
      if (this.chunked || !isExactlyChunked(buf, start, end)) {
        return this.#refuse('transfer_encoding', 'Transfer-Encoding must be exactly one "chunked".');
      }
      this.chunked = true;
    } else if (id === H.CONNECTION) {
      this.#connection(buf, start, end);
    } else if (id === H.EXPECT) {
      if (!foldEquals(buf, start, end, '100-continue')) {
        this.failure = fail(417, 'expectation', 'Only Expect: 100-continue is known.');
        return false;
      }
      this.expectsContinue = this.minor === 1;
    } else if (id === H.UPGRADE) this.upgrade = i;
    return true;
  }

  #connection(buf: Buffer, start: number, end: number): void {
    if (foldEquals(buf, start, end, 'keep-alive')) this.keepAlive = true;
    else if (foldEquals(buf, start, end, 'close')) this.keepAlive = false;
    else {
      this.#options ??= new Set();
      for (const option of text(buf, start, end).toLowerCase().split(',')) this.#options.add(option.trim());
      if (this.#options.has('close')) this.keepAlive = false;
    }
  }

  #hasUnderscore(buf: Buffer, i: number): boolean {
    const end = this.headers.nameEnd[i] ?? 0;
    for (let pos = this.headers.nameStart[i] ?? 0; pos < end; pos++) if (at(buf, pos) === 95) return true;
    return false;
  }

  #refuse(code: string, reason: string): false {
    this.failure = fail(400, code, reason);
    return false;
  }

  #fail(status: number, code: string, reason: string): number {
    this.failure = fail(status, code, reason);
    return FAILED;
  }
}

/** The common methods are compared in place so that no string is made for them. */
function knownMethod(buf: Buffer, start: number, end: number): string {
  const length = end - start;
  const first = at(buf, start);
  if (length === 3 && first === 71 && at(buf, start + 1) === 69 && at(buf, start + 2) === 84) return 'GET';
  if (length === 4 && first === 80 && bytesEqual(buf, start, end, POST)) return 'POST';
  return text(buf, start, end);
}

const POST = Buffer.from('POST');
