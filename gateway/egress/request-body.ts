/** Moves a request body to the upstream with framing of our own: what the client framed oddly is never passed on. */

import { ChunkedScanner } from './http/chunked.ts';
import type { RequestHead } from './http/request-head.ts';
import type { Wire } from './wire.ts';

const LAST_CHUNK = Buffer.from('0\r\n\r\n');

export class RequestBody {
  /** The body of a request that has none; nothing about it ever changes. */
  static readonly none = new RequestBody(false, 0);

  static of(head: RequestHead): RequestBody {
    return head.chunked || head.contentLength > 0
      ? new RequestBody(head.chunked, head.contentLength)
      : RequestBody.none;
  }

  done: boolean;
  /** Payload bytes forwarded. */
  bytes = 0;
  failure = '';
  tooLarge = false;
  #left: number;
  readonly #scanner: ChunkedScanner | null;

  private constructor(isChunked: boolean, length: number) {
    this.#scanner = isChunked ? new ChunkedScanner() : null;
    this.#left = Math.max(0, length);
    this.done = this.#scanner === null && this.#left === 0;
  }

  /** Length-framed bytes that may be sent together with the head: how many of `available` belong to this body. */
  takeWithHead(available: number): number {
    if (this.#scanner !== null) return 0;
    const take = Math.min(this.#left, available);
    this.#count(take);
    return take;
  }

  /** Forwards what belongs to this body; returns the offset behind it, or -1 on `failure`. `flow.isFull` is set by a slow upstream. */
  forward(buf: Buffer, start: number, end: number, wire: Wire, flow: { isFull: boolean }): number {
    if (this.#scanner !== null) return this.#chunked(this.#scanner, buf, start, end, wire, flow);
    const stop = start + Math.min(this.#left, end - start);
    if (stop > start) flow.isFull = !wire.write(buf.subarray(start, stop));
    this.#count(stop - start);
    return stop;
  }

  #chunked(
    scanner: ChunkedScanner,
    buf: Buffer,
    start: number,
    end: number,
    wire: Wire,
    flow: { isFull: boolean },
  ): number {
    const parts: Buffer[] = [];
    const stop = scanner.scan(buf, start, end, (from, to) => {
      parts.push(Buffer.from(`${(to - from).toString(16)}\r\n`, 'latin1'), buf.subarray(from, to), CRLF);
    });
    if (stop < 0) {
      this.failure = scanner.failure;
      this.tooLarge = scanner.tooLarge;
      return -1;
    }
    if (scanner.done) parts.push(LAST_CHUNK);
    if (parts.length > 0) flow.isFull = !wire.write(Buffer.concat(parts));
    this.bytes = scanner.dataBytes;
    this.done = scanner.done;
    return stop;
  }

  #count(bytes: number): void {
    this.#left -= bytes;
    this.bytes += bytes;
    this.done = this.#left === 0;
  }
}

const CRLF = Buffer.from('\r\n');
