/** Strict scanner of chunked framing (RFC 9112 §7.1): reports data ranges, never keeps bytes. */
import { MAX_CHUNK_DIGITS, MAX_CHUNK_LINE, MAX_CHUNK_OVERHEAD, MAX_TRAILER_BYTES } from '../limits.ts';
import { at, CR, LF, VALUE } from './bytes.ts';

const SIZE = 0;
const EXTENSION = 1;
const SIZE_LF = 2;
const DATA = 3;
const DATA_CR = 4;
const DATA_LF = 5;
const TRAILER_START = 6;
const TRAILER = 7;
const TRAILER_LF = 8;
const END_LF = 9;
const DONE = 10;

/** Told of each run of payload bytes. */
export type DataRange = (start: number, end: number) => void;

/** One body. `scan` is called with consecutive pieces; afterwards `done` or `failure` may be set. */
export class ChunkedScanner {
  done = false;
  failure = '';
  /** Payload bytes so far. */
  dataBytes = 0;
  #state = SIZE;
  #size = 0;
  #digits = 0;
  #line = 0;
  #overhead = 0;
  #trailer = 0;

  /** Returns the offset behind the last byte that belongs to this body (`end` while it goes on), or -1 on `failure`. */
  scan(buf: Buffer, start: number, end: number, onData: DataRange): number {
    let pos = start;
    while (pos < end && this.#state !== DONE) {
      if (this.#state === DATA) {
        const stop = Math.min(end, pos + this.#size);
        onData(pos, stop);
        this.dataBytes += stop - pos;
        this.#size -= stop - pos;
        pos = stop;
        if (this.#size === 0) this.#state = DATA_CR;
        continue;
      }
      this.#overhead++;
      if (!this.#framing(at(buf, pos++))) return -1;
    }
    return pos;
  }

  #framing(c: number): boolean {
    switch (this.#state) {
      case SIZE:
        return this.#sizeByte(c);
      case EXTENSION:
        if (c === CR) this.#state = SIZE_LF;
        else if (VALUE[c] !== 1) return this.#fail('a control character in a chunk extension');
        return ++this.#line <= MAX_CHUNK_LINE || this.#fail('a chunk extension that is too long');
      case SIZE_LF:
        return c === LF ? this.#startData() : this.#fail('a chunk size line that does not end in CRLF');
      case DATA_CR:
        this.#state = DATA_LF;
        return c === CR || this.#fail('chunk data that is longer than its size');
      case DATA_LF:
        this.#state = SIZE;
        this.#digits = 0;
        this.#line = 0;
        return c === LF || this.#fail('chunk data that does not end in CRLF');
      default:
        return this.#trailerByte(c);
    }
  }

  #sizeByte(c: number): boolean {
    const digit = hexDigit(c);
    if (digit >= 0) {
      this.#size = this.#size * 16 + digit;
      return ++this.#digits <= MAX_CHUNK_DIGITS || this.#fail('a chunk size that is too large');
    }
    if (this.#digits === 0) return this.#fail('a chunk size that is not hexadecimal');
    if (c === CR) this.#state = SIZE_LF;
    else if (c === 59) this.#state = EXTENSION;
    else return this.#fail('a chunk size that is not hexadecimal');
    return true;
  }

  #startData(): boolean {
    this.#state = this.#size === 0 ? TRAILER_START : DATA;
    if (this.#overhead <= MAX_CHUNK_OVERHEAD || this.#overhead <= 4 * this.dataBytes) return true;
    return this.#fail('more chunk framing than data', true);
  }

  /** Trailer fields are read, bounded and dropped: a Host or Authorization there must reach nobody. */
  #trailerByte(c: number): boolean {
    if (++this.#trailer > MAX_TRAILER_BYTES) return this.#fail('trailers that are too long');
    switch (this.#state) {
      case TRAILER_START:
        if (c === CR) this.#state = END_LF;
        else if (VALUE[c] === 1 && c !== 32 && c !== 9) this.#state = TRAILER;
        else return this.#fail('a malformed trailer');
        return true;
      case TRAILER:
        if (c === CR) this.#state = TRAILER_LF;
        else if (VALUE[c] !== 1) return this.#fail('a control character in a trailer');
        return true;
      case TRAILER_LF:
        this.#state = TRAILER_START;
        return c === LF || this.#fail('a trailer that does not end in CRLF');
      default:
        if (c !== LF) return this.#fail('an end that is not CRLF');
        this.#state = DONE;
        this.done = true;
        return true;
    }
  }

  /** The failure is one of size (413), not of form (400). */
  tooLarge = false;

  #fail(why: string, tooLarge = false): false {
    this.failure = why;
    this.tooLarge = tooLarge;
    return false;
  }
}

function hexDigit(c: number): number {
  if (c >= 48 && c <= 57) return c - 48;
  const lower = c | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}
