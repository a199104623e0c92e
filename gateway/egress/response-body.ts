/** Finds where a response body ends and turns each run of it into the bytes the client gets. */
import { ChunkedScanner } from './http/chunked.ts';
import type { ResponseFraming } from './http/response-head.ts';
import type { Scrubber } from './scrub.ts';

const CRLF = Buffer.from('\r\n');
const LAST_CHUNK = Buffer.from('0\r\n\r\n');

/** `verbatim`: as framed by the upstream; `chunks`: framed anew; `raw`: without framing, for an HTTP/1.0 client. */
export type BodyForm = 'verbatim' | 'chunks' | 'raw';

export class ResponseBody {
  done: boolean;
  failure = '';
  /** Payload bytes so far. */
  bytes = 0;
  readonly #framing: ResponseFraming;
  readonly #form: BodyForm;
  readonly #scrubber: Scrubber | null;
  readonly #scanner: ChunkedScanner | null;
  #left: number;
  #held: Buffer | null = null;

  constructor(framing: ResponseFraming, length: number, form: BodyForm, scrubber: Scrubber | null) {
    this.#framing = framing;
    this.#form = form;
    this.#scrubber = scrubber;
    this.#scanner = framing === 'chunked' ? new ChunkedScanner() : null;
    this.#left = length;
    this.done = framing === 'none';
  }

  /** The bytes pass as they are and are masked in place, so head and body can leave in one write. */
  get isVerbatim(): boolean {
    return this.#form === 'verbatim' && (this.#scrubber === null || this.done);
  }

  /** A length-framed body whose last byte is among the next `available`: nothing can be split any more. */
  isCompleteWithin(available: number): boolean {
    return this.done || (this.#framing === 'length' && this.#left <= available);
  }

  /** Offset behind the last byte of `buf[start..end)` that belongs to this body, or -1 on `failure`. Counts, does not copy. */
  measure(buf: Buffer, start: number, end: number): number {
    if (this.done) return start;
    if (this.#framing === 'close') {
      this.bytes += end - start;
      return end;
    }
    if (this.#scanner !== null) return this.#measureChunked(this.#scanner, buf, start, end);
    const stop = start + Math.min(this.#left, end - start);
    this.#left -= stop - start;
    this.bytes += stop - start;
    this.done = this.#left === 0;
    return stop;
  }

  /** What the client gets for `buf[start..end)` when not verbatim; null on `failure`. */
  transform(buf: Buffer, start: number, end: number): { out: Buffer; stop: number } | null {
    if (this.#scanner === null) {
      const stop = this.measure(buf, start, end);
      return { out: this.#clean(buf.subarray(start, stop)), stop };
    }
    const data: Buffer[] = [];
    const stop = this.#scanner.scan(buf, start, end, (from, to) => data.push(buf.subarray(from, to)));
    if (!this.#afterScan(this.#scanner, stop)) return null;
    return { out: this.#frame(this.#clean(data.length === 1 ? (data[0] ?? CRLF) : Buffer.concat(data))), stop };
  }

  /** What was held back when a body that ends with its connection is over. */
  flush(): Buffer | null {
    const held = this.#held;
    this.#held = null;
    this.done = true;
    return held;
  }

  #measureChunked(scanner: ChunkedScanner, buf: Buffer, start: number, end: number): number {
    const stop = scanner.scan(buf, start, end, ignore);
    return this.#afterScan(scanner, stop) ? stop : -1;
  }

  #afterScan(scanner: ChunkedScanner, stop: number): boolean {
    if (stop < 0) {
      this.failure = scanner.failure;
      return false;
    }
    this.bytes = scanner.dataBytes;
    this.done = scanner.done;
    return true;
  }

  /** Masks, and holds back a tail that may be the beginning of a secret until the next bytes tell. */
  #clean(payload: Buffer): Buffer {
    if (this.#scrubber === null) return payload;
    const bytes = this.#held === null ? payload : Buffer.concat([this.#held, payload]);
    this.#held = null;
    this.#scrubber.mask(bytes, 0, bytes.length);
    const held = this.done ? 0 : this.#scrubber.heldBytes(bytes, 0, bytes.length);
    if (held === 0) return bytes;
    this.#held = Buffer.from(bytes.subarray(bytes.length - held));
    return bytes.subarray(0, bytes.length - held);
  }

  #frame(payload: Buffer): Buffer {
    if (this.#form === 'raw') return payload;
    const parts =
      payload.length === 0 ? [] : [Buffer.from(`${payload.length.toString(16)}\r\n`, 'latin1'), payload, CRLF];
    if (this.done) parts.push(LAST_CHUNK);
    return parts.length === 0 ? payload : Buffer.concat(parts);
  }
}

function ignore(): void {}
