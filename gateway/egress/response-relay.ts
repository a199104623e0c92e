/** Moves one response from the upstream to the client as it arrives: head cleaned, echoes masked, nothing buffered. */
import type { PreparedCredential } from '../../vault/index.ts';
import type { ExchangeClient } from './exchange.ts';
import { FAILED, INCOMPLETE } from './http/header-block.ts';
import { ResponseHead } from './http/response-head.ts';
import type { Judged } from './judge.ts';
import type { RequestBody } from './request-body.ts';
import type { BodyForm } from './response-body.ts';
import { ResponseBody } from './response-body.ts';
import { cutHopLines } from './response-lines.ts';
import { Scrubber } from './scrub.ts';

/** Informational responses in front of one final response (RFC 9110 §15.2): more is a fault. */
const MAX_INFORMATIONAL = 16;

/** Where the minor version stands in a status line, and what is written there. */
const MINOR_AT = 'HTTP/1.'.length;
const ONE = 49;

const CLOSE = 'connection: close\r\n';

export class ResponseRelay {
  /** The whole response was handed to the client. */
  done = false;
  /** Why the response cannot be relayed, as an end of "a response with …". */
  failure = '';
  headSent = false;
  status = 0;
  firstByteAt = 0;
  isUpstreamReusable = false;
  isClientReusable = false;
  readonly #client: ExchangeClient;
  readonly #method: string;
  readonly #scrubber: Scrubber | null;
  readonly #requestBody: RequestBody;
  #body: ResponseBody | null = null;
  #headBytes: Buffer | null = null;
  #informational = 0;

  constructor(
    client: ExchangeClient,
    judged: Judged,
    credentials: readonly PreparedCredential[],
    requestBody: RequestBody,
  ) {
    this.#client = client;
    this.#method = judged.facts.method;
    this.#scrubber = credentials.length === 0 ? null : new Scrubber(credentials);
    this.#requestBody = requestBody;
  }

  /** Some byte of a response has arrived. */
  get hasBytes(): boolean {
    return this.firstByteAt !== 0;
  }

  get bytes(): number {
    return this.#body?.bytes ?? 0;
  }

  get redactions(): number {
    return this.#scrubber?.replaced ?? 0;
  }

  /** The body is over when the connection is (RFC 9112 §6.3 rule 8). */
  get endsWithConnection(): boolean {
    return this.headSent && !this.done && this.#endsWithConnection;
  }
  #endsWithConnection = false;

  /** The client knows the end of the body by the end of its connection, and does not have all of it. */
  get isEndedByClose(): boolean {
    return this.#isEndedByClose && this.headSent && !this.done;
  }
  #isEndedByClose = false;

  /** Returns false when the client is slower than the upstream. */
  onBytes(buf: Buffer, length: number): boolean {
    if (this.firstByteAt === 0) this.firstByteAt = performance.now();
    if (this.#body !== null) return this.#onBody(this.#body, buf, 0, length);
    return this.#onHead(buf, length);
  }

  /** The upstream ended a body that ends with its connection. */
  end(): void {
    const rest = this.#body?.flush() ?? null;
    if (rest !== null) this.#client.wire.write(rest);
    this.done = true;
    this.isUpstreamReusable = false;
    this.isClientReusable = false;
  }

  #onHead(received: Buffer, receivedLength: number): boolean {
    const [buf, length] = this.#headSoFar(received, receivedLength);
    const head = sharedHead;
    let start = 0;
    for (;;) {
      const end = head.parse(buf, start, length);
      if (end === INCOMPLETE) return this.#waitForHead(buf, start, length);
      if (end === FAILED) return this.#fail(head.failure);
      if (end - start > this.#client.context.limits.headBytes) return this.#fail('a head that is too large');
      if (head.status >= 200) return this.#onFinalHead(buf, head, length);
      if (head.status === 101) return this.#fail('a switch of protocols nobody asked for');
      if (++this.#informational > MAX_INFORMATIONAL) return this.#fail('too many informational responses');
      if (this.#client.head.minor === 1) this.#writeInformational(buf, head);
      start = end;
      if (start === length) return true;
    }
  }

  #headSoFar(received: Buffer, length: number): [Buffer, number] {
    if (this.#headBytes === null) return [received, length];
    const joined = Buffer.concat([this.#headBytes, received.subarray(0, length)]);
    this.#headBytes = null;
    return [joined, joined.length];
  }

  #waitForHead(buf: Buffer, start: number, length: number): boolean {
    if (length - start > this.#client.context.limits.headBytes) return this.#fail('a head that is too large');
    this.#headBytes = Buffer.from(buf.subarray(start, length));
    return true;
  }

  /** Its lines can hold an echo and hop-by-hop fields as those of a final head do. */
  #writeInformational(buf: Buffer, head: ResponseHead): void {
    this.#scrubber?.mask(buf, head.start, head.end);
    this.#client.wire.write(Buffer.from(buf.subarray(cleanHead(buf, head, false), head.end)));
  }

  #onFinalHead(buf: Buffer, head: ResponseHead, length: number): boolean {
    const framing = head.framing(this.#method);
    const isOldClient = this.#client.head.minor === 0;
    const form: BodyForm =
      framing !== 'chunked' ? 'verbatim' : isOldClient ? 'raw' : this.#scrubber !== null ? 'chunks' : 'verbatim';
    const body = new ResponseBody(framing, Math.max(0, head.contentLength), form, this.#scrubber);
    this.#body = body;
    this.status = head.status;
    this.#endsWithConnection = framing === 'close';
    this.#isEndedByClose = framing === 'close' || form === 'raw';
    this.isUpstreamReusable = head.keepAlive && framing !== 'close';
    this.isClientReusable =
      this.#client.head.keepAlive &&
      framing !== 'close' &&
      form !== 'raw' &&
      this.#requestBody.done &&
      !this.#client.context.isStopping();
    // A body that is whole already is masked together with the head; any other as it comes.
    const isWhole = body.isCompleteWithin(length - head.end);
    this.#scrubber?.mask(buf, head.start, isWhole ? length : head.end);
    const start = cleanHead(buf, head, form === 'raw');
    if (this.isClientReusable && !isOldClient) return this.#sendFirst(body, buf, start, head.end, length);
    return this.#sendFirstClosing(body, buf, start, head.end, length, isOldClient);
  }

  /** Head and what is there of the body leave in one write. */
  #sendFirst(body: ResponseBody, buf: Buffer, start: number, headEnd: number, length: number): boolean {
    this.headSent = true;
    if (!body.isVerbatim && !body.isCompleteWithin(length - headEnd)) {
      this.#write(buf, start, headEnd);
      return this.#onBody(body, buf, headEnd, length);
    }
    const stop = body.measure(buf, headEnd, length);
    if (stop < 0) return this.#fail(body.failure);
    this.#afterBody(body, stop, length);
    return this.#write(buf, start, stop);
  }

  /** The connection ends after this response, and the client is told so. An HTTP/1.0 client that asked to keep it is told that, too. */
  #sendFirstClosing(
    body: ResponseBody,
    buf: Buffer,
    start: number,
    headEnd: number,
    length: number,
    isOldClient: boolean,
  ): boolean {
    const line = this.isClientReusable && isOldClient ? 'connection: keep-alive\r\n' : CLOSE;
    const head = Buffer.concat([buf.subarray(start, headEnd - 2), Buffer.from(`${line}\r\n`, 'latin1')]);
    this.headSent = true;
    this.#client.wire.write(head);
    if (body.done) {
      this.#afterBody(body, headEnd, length);
      return true;
    }
    return this.#onBody(body, buf, headEnd, length);
  }

  #onBody(body: ResponseBody, buf: Buffer, start: number, end: number): boolean {
    if (body.isVerbatim) {
      const stop = body.measure(buf, start, end);
      if (stop < 0) return this.#fail(body.failure);
      this.#afterBody(body, stop, end);
      return stop === start || this.#write(buf, start, stop);
    }
    const piece = body.transform(buf, start, end);
    if (piece === null) return this.#fail(body.failure);
    this.#afterBody(body, piece.stop, end);
    return piece.out.length === 0 || this.#client.wire.write(Buffer.from(piece.out));
  }

  #afterBody(body: ResponseBody, stop: number, end: number): void {
    if (!body.done) return;
    this.done = true;
    // Bytes behind the end belong to no request: the connection is not trusted with another.
    if (stop < end) this.isUpstreamReusable = false;
  }

  /** TLS encrypts (copies) at once when nothing waits; otherwise the memory is not ours after this call. */
  #write(buf: Buffer, start: number, end: number): boolean {
    const { wire } = this.#client;
    const bytes = buf.subarray(start, end);
    return wire.write(wire.isEncrypted && wire.isIdle ? bytes : Buffer.from(bytes));
  }

  #fail(why: string): false {
    this.failure = why;
    return false;
  }
}

/** Cuts what ends here and speaks our own version (RFC 9110 §2.5), in place. Returns the new start. */
function cleanHead(buf: Buffer, head: ResponseHead, dropFraming: boolean): number {
  if (head.minor === 0) buf[head.start + MINOR_AT] = ONE;
  return head.hasHop || dropFraming ? cutHopLines(buf, head, dropFraming) : head.start;
}

/** Parsed and used within one call. */
const sharedHead = new ResponseHead();
