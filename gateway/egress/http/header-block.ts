/** One strict pass over the header lines of a head (RFC 9112 §5), by offsets, without making strings. */
import { MAX_HEADERS } from '../limits.ts';
import {
  at,
  COLON,
  CR,
  foldEquals,
  foldStartsWith,
  HTAB,
  LF,
  marked,
  SP,
  TOKEN,
  text,
  UNDERSCORE,
  VALUE,
} from './bytes.ts';
import type { HeadFailure } from './head-failure.ts';
import { fail } from './head-failure.ts';

const MARKED_VALUE = marked(VALUE);

/** Headers the gateway acts on; every other line is `OTHER` and passes as it came. */
export const H = {
  OTHER: 0,
  HOST: 1,
  CONNECTION: 2,
  CONTENT_LENGTH: 3,
  TRANSFER_ENCODING: 4,
  UPGRADE: 5,
  EXPECT: 6,
  PROXY_AUTHORIZATION: 7,
  ACCEPT_ENCODING: 8,
  AUTHORIZATION: 10,
  /** Hop-by-hop or only meant for a proxy: never forwarded in either direction. */
  HOP: 11,
  /** Claims about who asked or what was asked that only a gateway may make: dropped from requests. */
  CLAIM: 12,
  /** `Alt-Svc`: an invitation to QUIC, which no rule allows; dropped from responses. */
  ALT_SVC: 13,
} as const;

export type HeaderId = (typeof H)[keyof typeof H];

/** parse() results that are not an end offset. */
export const INCOMPLETE = 0;
export const FAILED = -1;

/** The header lines of the head parsed last. Line i spans `[nameStart, next nameStart)`, CRLF included. */
export class HeaderBlock {
  count = 0;
  readonly nameStart = new Int32Array(MAX_HEADERS + 1);
  readonly nameEnd = new Int32Array(MAX_HEADERS);
  readonly valueStart = new Int32Array(MAX_HEADERS);
  readonly valueEnd = new Int32Array(MAX_HEADERS);
  readonly id = new Uint8Array(MAX_HEADERS);
  failure: HeadFailure | null = null;
  /** Some value holds a `_`. */
  hasUnderscore = false;

  /** Parses from the first header line at `start`; returns the offset behind the empty line, INCOMPLETE or FAILED. */
  parse(buf: Uint8Array, start: number, end: number): number {
    this.count = 0;
    this.failure = null;
    this.hasUnderscore = false;
    let pos = start;
    for (;;) {
      if (pos >= end) return INCOMPLETE;
      if (at(buf, pos) === CR) return this.#finish(buf, pos, end);
      const next = this.#line(buf, pos, end);
      if (next <= 0) return next;
      pos = next;
    }
  }

  /** Index of the first line with this id, or -1. */
  find(id: HeaderId): number {
    for (let i = 0; i < this.count; i++) if (this.id[i] === id) return i;
    return -1;
  }

  value(buf: Buffer, index: number): string {
    return text(buf, this.valueStart[index], this.valueEnd[index]);
  }

  #finish(buf: Uint8Array, pos: number, end: number): number {
    if (pos + 1 >= end) return INCOMPLETE;
    if (at(buf, pos + 1) !== LF) return this.#fail('bare_cr', 'A CR in the head is not followed by LF.');
    this.nameStart[this.count] = pos;
    return pos + 2;
  }

  #line(buf: Uint8Array, start: number, end: number): number {
    let pos = start;
    while (pos < end && TOKEN[at(buf, pos)] === 1) pos++;
    if (pos >= end) return INCOMPLETE;
    if (pos === start || at(buf, pos) !== COLON) return this.#nameFailure(at(buf, pos), pos === start);
    const index = this.count;
    if (index >= MAX_HEADERS) {
      this.failure = fail(431, 'too_many_headers', `More than ${MAX_HEADERS} header lines.`);
      return FAILED;
    }
    const nameEnd = pos++;
    while (pos < end && (at(buf, pos) === SP || at(buf, pos) === HTAB)) pos++;
    const valueStart = pos;
    let seen = 0;
    for (; pos < end; pos++) {
      const flags = MARKED_VALUE[at(buf, pos)] ?? 0;
      if (flags === 0) break;
      seen |= flags;
    }
    if ((seen & UNDERSCORE) !== 0) this.hasUnderscore = true;
    if (pos + 1 >= end) return pos < end && at(buf, pos) !== CR ? this.#valueFailure(at(buf, pos)) : INCOMPLETE;
    if (at(buf, pos) !== CR || at(buf, pos + 1) !== LF) return this.#valueFailure(at(buf, pos));
    let valueEnd = pos;
    while (valueEnd > valueStart && (at(buf, valueEnd - 1) === SP || at(buf, valueEnd - 1) === HTAB)) valueEnd--;
    this.nameStart[index] = start;
    this.nameEnd[index] = nameEnd;
    this.valueStart[index] = valueStart;
    this.valueEnd[index] = valueEnd;
    this.id[index] = classify(buf, start, nameEnd);
    this.count = index + 1;
    return pos + 2;
  }

  #nameFailure(byte: number, empty: boolean): number {
    if (empty && (byte === SP || byte === HTAB))
      return this.#fail('line_folding', 'A header line begins with white space.');
    if (byte === LF) return this.#fail('bare_lf', 'A line ends in LF without CR.');
    if (byte === SP || byte === HTAB) return this.#fail('space_before_colon', 'White space stands before a colon.');
    return this.#fail('header_name', 'A header name is empty or holds a byte that is not a token character.');
  }

  #valueFailure(byte: number): number {
    if (byte === LF) return this.#fail('bare_lf', 'A line ends in LF without CR.');
    if (byte === CR) return this.#fail('bare_cr', 'A CR in the head is not followed by LF.');
    return this.#fail('header_value', 'A header value holds a control character.');
  }

  #fail(code: string, reason: string): number {
    this.failure = fail(400, code, reason);
    return FAILED;
  }
}

function classify(buf: Uint8Array, start: number, end: number): HeaderId {
  switch (at(buf, start) | 32) {
    case 97: // a
      if (foldEquals(buf, start, end, 'authorization')) return H.AUTHORIZATION;
      if (foldEquals(buf, start, end, 'accept-encoding')) return H.ACCEPT_ENCODING;
      return foldEquals(buf, start, end, 'alt-svc') ? H.ALT_SVC : H.OTHER;
    case 99: // c
      if (foldEquals(buf, start, end, 'connection')) return H.CONNECTION;
      return foldEquals(buf, start, end, 'content-length') ? H.CONTENT_LENGTH : H.OTHER;
    case 101: // e
      return foldEquals(buf, start, end, 'expect') ? H.EXPECT : H.OTHER;
    case 102: // f
      return foldEquals(buf, start, end, 'forwarded') ? H.CLAIM : H.OTHER;
    case 104: // h
      if (foldEquals(buf, start, end, 'host')) return H.HOST;
      return foldEquals(buf, start, end, 'http2-settings') ? H.HOP : H.OTHER;
    case 107: // k
      return foldEquals(buf, start, end, 'keep-alive') ? H.HOP : H.OTHER;
    case 112: // p
      if (foldEquals(buf, start, end, 'proxy-authorization')) return H.PROXY_AUTHORIZATION;
      return foldStartsWith(buf, start, end, 'proxy-') ? H.HOP : H.OTHER;
    case 116: // t
      if (foldEquals(buf, start, end, 'transfer-encoding')) return H.TRANSFER_ENCODING;
      return foldEquals(buf, start, end, 'te') || foldEquals(buf, start, end, 'trailer') ? H.HOP : H.OTHER;
    case 117: // u
      return foldEquals(buf, start, end, 'upgrade') ? H.UPGRADE : H.OTHER;
    case 120: // x
      return isClaim(buf, start, end) ? H.CLAIM : H.OTHER;
    default:
      return H.OTHER;
  }
}

/** Headers by which a caller tells the upstream another method, path or origin than the one that was judged. */
const CLAIMS = [
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-original-url',
  'x-original-host',
  'x-rewrite-url',
  'x-real-ip',
  'x-host',
];

function isClaim(buf: Uint8Array, start: number, end: number): boolean {
  if (foldStartsWith(buf, start, end, 'x-forwarded-') || foldStartsWith(buf, start, end, 'x-sallyport-')) return true;
  for (const name of CLAIMS) if (foldEquals(buf, start, end, name)) return true;
  return false;
}
