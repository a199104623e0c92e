/** The client side of HTTP/1.1: heads are parsed one at a time, each judged alone, each answered before the next is looked at. */
import type { RequestRecord } from '../audit/types.ts';
import type { Caller, PolicyGeneration } from './callers.ts';
import { createCaller } from './callers.ts';
import type { EgressContext, Revocable, Timed } from './context.ts';
import type { ExchangeClient } from './exchange.ts';
import { Exchange } from './exchange.ts';
import { LF } from './http/bytes.ts';
import { FAILED, INCOMPLETE } from './http/header-block.ts';
import { RequestHead } from './http/request-head.ts';
import type { Judged, Rejected } from './judge.ts';
import { rawEvidence } from './raw-evidence.ts';
import { makeRecord, refusalRecord, requestAsSent, requestOf } from './record.ts';
import type { Refusal } from './refusal.ts';
import { deny, refusalResponse, refusals } from './refusal.ts';
import type { Scope } from './scope.ts';
import type { Lane } from './upstream-pool.ts';
import type { Wire, WireReader } from './wire.ts';

/** How the requests of one connection are understood: a tunnel has one scope, the plain proxy one for each URL. */
export interface Dialect {
  readonly conn: RequestRecord['conn'];
  /** Who asks, as far as the connection tells (the plain proxy learns it from each request). */
  readonly caller: Caller | null;
  /** The scope that refused heads are recorded with, or null. */
  readonly scope: Scope | null;
  /** Judges a complete head; `taken` = the connection now belongs to a tunnel. */
  judge(session: Session, head: RequestHead): Judged | Rejection | 'taken';
  /** The connection ended without a byte of a request. */
  onUnused?(): void;
}

export interface Rejection extends Rejected {
  readonly caller: Caller | null;
}

const HEAD = 0;
const BODY = 1;
const WAIT = 2;
const LINGER = 3;
/** Handed to a tunnel, which decides about reading. */
const LEFT = 4;

const EMPTY = Buffer.alloc(0);

export class Session implements WireReader, ExchangeClient, Timed, Revocable {
  readonly context: EgressContext;
  readonly wire: Wire;
  readonly head = new RequestHead();
  record: ExchangeClient['record'];
  deadline: number;
  readonly #dialect: Dialect;
  #state = HEAD;
  #exchange: Exchange | null = null;
  /** The lane of the last request. */
  #lane: { readonly scope: Scope; readonly generation: PolicyGeneration; readonly lane: Lane } | null = null;
  /** Bytes received and not yet understood. */
  #pending: Buffer = EMPTY;
  /** Length of `#pending` when it was last parsed: an unfinished head is parsed again only when it ended or doubled. */
  #parsedLength = 0;
  #lingered = 0;
  #isStopping = false;
  /** The client has closed its side: what it asked is answered, nothing further comes. */
  #hasEnded = false;
  /** Some head was complete or refused. */
  #isUsed = false;

  constructor(context: EgressContext, wire: Wire, dialect: Dialect) {
    this.context = context;
    this.wire = wire;
    this.#dialect = dialect;
    this.record = { conn: dialect.conn, caller: dialect.caller ?? NOBODY };
    this.deadline = context.coarseNow() + context.limits.idleMs;
    wire.reader = this;
    // Otherwise Node would close the way back as soon as a client closes the way here.
    wire.socket.allowHalfOpen = true;
    context.timed.add(this);
    context.sessions.add(this);
  }

  get caller(): Caller | null {
    return this.#exchange === null ? this.#dialect.caller : this.record.caller;
  }

  onBytes(buf: Buffer, length: number): boolean {
    try {
      return this.#onBytes(length === buf.length ? buf : buf.subarray(0, length));
    } catch (error) {
      this.context.onFault('session', error);
      this.destroy();
      return false;
    }
  }

  onEnd(): void {
    this.#hasEnded = true;
    if (this.#state === LINGER || (this.#state === HEAD && !this.wire.isFull)) this.#close();
    else if (this.#state === BODY && this.#exchange?.takesBody === true) this.destroy();
  }

  onDrain(): void {
    if (this.#exchange !== null) this.#exchange.onClientDrain();
    else if (this.#state === HEAD) this.#goOn();
  }

  onClose(): void {
    this.context.timed.delete(this);
    this.context.sessions.delete(this);
    const exchange = this.#exchange;
    this.#exchange = null;
    exchange?.onClientClose();
    if (!this.#isUsed) this.#dialect.onUnused?.();
  }

  /** Hands the connection to another reader (a tunnel) and returns what was received beyond the head. */
  leave(): Buffer {
    this.context.timed.delete(this);
    this.context.sessions.delete(this);
    this.#state = LEFT;
    const rest = this.#pending;
    this.#pending = EMPTY;
    return rest;
  }

  onDeadline(): void {
    if (this.#exchange !== null) this.#exchange.onDeadline();
    else if (this.#state === HEAD && this.#pending.length > 0 && !this.wire.isFull)
      this.#refuseRaw(refusals.headTimeout, this.#pending);
    else this.destroy();
  }

  /** Who asks, under which policy, where to: a connection is never shared across any of these (D14). */
  laneFor({ scope, generation }: Judged): Lane {
    const known = this.#lane;
    if (known !== null && known.scope === scope && known.generation === generation) return known.lane;
    const key = `${this.record.caller.id} ${generation.info.generation} ${scope.scheme} ${scope.authority}`;
    const lane = this.context.pool.lane(key);
    this.#lane = { scope, generation, lane };
    return lane;
  }

  setDeadline(at: number): void {
    this.deadline = at;
  }

  revoke(): void {
    this.#exchange?.revoke();
  }

  stop(): void {
    this.#isStopping = true;
    if (this.#exchange === null && this.#state === HEAD && this.#pending.length === 0) this.#close();
  }

  destroy(): void {
    if (this.#exchange === null) this.wire.destroy();
    else this.#exchange.cutClient();
  }

  readOn(): void {
    if (!(this.#state === BODY ? this.#feedBody() : this.#readsOn())) return;
    if (this.#hasEnded && this.#state === BODY) this.destroy();
    else this.wire.resume();
  }

  answer(refusal: Refusal, id: string): void {
    this.#exchange = null;
    this.#respond(refusal, id, !this.#canGoOn());
  }

  finished(isReusable: boolean): void {
    this.#exchange = null;
    if (!isReusable || this.#isStopping) {
      this.#linger();
      return;
    }
    this.#next();
  }

  #onBytes(bytes: Buffer): boolean {
    if (this.#state === LINGER) {
      this.#lingered += bytes.length;
      if (this.#lingered > this.context.limits.lingerBytes) this.destroy();
      return true;
    }
    this.#pending = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
    if (this.#state === HEAD) return this.#parseHeads();
    return this.#state === BODY ? this.#feedBody() : this.#readsOn();
  }

  /** Takes heads off `#pending` while they can be answered at once; returns whether to read on. */
  #parseHeads(): boolean {
    while (this.#state === HEAD && this.#pending.length > 0) {
      // Answers that nobody reads are not piled up: the next request waits until they have left.
      if (this.wire.isFull) return false;
      const buf = this.#pending;
      if (this.#parsedLength > 0 && !this.#mayBeComplete(buf)) return true;
      const end = this.head.parse(buf, 0, buf.length);
      if (end === INCOMPLETE) return this.#waitForHead(buf);
      this.#parsedLength = 0;
      if (end === FAILED) this.#refuseHead(buf);
      else if (end > this.context.limits.headBytes) this.#refuseRaw(this.#tooLarge(buf), buf);
      else this.#onHead(buf, end);
    }
    return this.#readsOn();
  }

  /** While an answer is awaited reading goes on, so that a client that leaves is noticed; what it sends ahead is bounded. */
  #readsOn(): boolean {
    if (this.#state === BODY) return this.#exchange?.takesBody === true && !this.#exchange.isFull;
    return this.#state !== WAIT || this.#pending.length < this.context.limits.headBytes;
  }

  /** An unfinished head is not parsed anew for each byte that trickles in: that would be quadratic. */
  #mayBeComplete(buf: Buffer): boolean {
    if (buf.length >= 2 * this.#parsedLength || buf.length > this.context.limits.headBytes) return true;
    return buf.indexOf('\r\n\r\n', Math.max(0, this.#parsedLength - 3)) >= 0;
  }

  #waitForHead(buf: Buffer): boolean {
    if (this.#parsedLength === 0) this.deadline = this.context.coarseNow() + this.context.limits.headMs;
    this.#parsedLength = buf.length;
    if (buf.length <= this.context.limits.headBytes) return true;
    this.#parsedLength = 0;
    this.#refuseRaw(this.#tooLarge(buf), buf);
    return this.#state === LINGER;
  }

  /** A request line that alone is over the limit has a status of its own (RFC 9112 §3). */
  #tooLarge(buf: Buffer): Refusal {
    const lineEnd = buf.indexOf(LF);
    return lineEnd < 0 || lineEnd > this.context.limits.headBytes ? refusals.targetTooLong : refusals.headTooLarge;
  }

  #onHead(buf: Buffer, end: number): void {
    this.#isUsed = true;
    this.context.stats.requests++;
    this.#pending = end === buf.length ? EMPTY : buf.subarray(end);
    const result = this.#dialect.judge(this, this.head);
    if (result === 'taken') return;
    if ('refusal' in result) {
      this.#refuse(result, !this.#canGoOn());
      return;
    }
    this.#forward(result, buf, end);
  }

  #forward(judged: Judged, buf: Buffer, end: number): void {
    const { caller } = judged;
    if (this.#isStopping || this.context.isStopping()) {
      this.#refuse({ refusal: refusals.stopping, scope: judged.scope, facts: judged.facts, caller }, true);
      return;
    }
    if (!this.context.audit.reserve()) {
      // Nothing leaves without its record: a full log is a closed gate.
      this.context.stats.faults++;
      this.context.audit.missed();
      this.#respond(refusals.auditUnavailable, this.context.newId(), !this.#canGoOn());
      return;
    }
    this.context.stats.allowed++;
    if (this.record.caller !== caller) {
      this.record = { conn: this.#dialect.conn, caller };
      this.#lane = null;
    }
    this.deadline = Number.POSITIVE_INFINITY;
    const exchange = new Exchange(this, judged);
    this.#exchange = exchange;
    this.#state = exchange.body.done ? WAIT : BODY;
    const taken = exchange.start(buf, end, buf.length);
    if (taken > 0) this.#pending = end + taken === buf.length ? EMPTY : buf.subarray(end + taken);
    if (this.#state === BODY) this.#feedBody();
  }

  /** Moves received body bytes on; returns whether to read more. */
  #feedBody(): boolean {
    const exchange = this.#exchange;
    if (exchange?.takesBody === true && this.#pending.length > 0) {
      const buf = this.#pending;
      const stop = exchange.onRequestBytes(buf, 0, buf.length);
      if (stop < 0) return this.#readsOn();
      this.#pending = stop === buf.length ? EMPTY : buf.subarray(stop);
    }
    if (exchange?.body.done === true && this.#state === BODY) this.#state = WAIT;
    return this.#readsOn();
  }

  /** The connection can carry another request: nothing of a body is left unread. */
  #canGoOn(): boolean {
    return this.head.keepAlive && this.head.contentLength <= 0 && !this.head.chunked && !this.#isStopping;
  }

  #next(): void {
    this.#state = HEAD;
    this.deadline = this.context.coarseNow() + this.context.limits.idleMs;
    this.#goOn();
  }

  /** Takes up what was received meanwhile, then reads on. */
  #goOn(): void {
    if (this.#pending.length > 0 && !this.#parseHeads()) return;
    if (this.#hasEnded && this.#state === HEAD) this.#close();
    else this.wire.resume();
  }

  #refuseHead(buf: Buffer): void {
    const failure = this.head.failure ?? {
      status: 400,
      code: 'request_line',
      reason: 'The request could not be read.',
    };
    this.#refuseRaw(
      deny(failure.status, failure.code, failure.reason, 'Send plain HTTP/1.1 as RFC 9112 writes it.'),
      buf,
    );
  }

  /** Bytes that are no request: recorded as they came, cut; the connection is over. */
  #refuseRaw(refusal: Refusal, buf: Buffer): void {
    this.#isUsed = true;
    this.context.stats.requests++;
    this.#refuse(
      { refusal, scope: this.#dialect.scope, facts: null, caller: this.#dialect.caller },
      true,
      rawEvidence(buf),
    );
  }

  #refuse(rejected: Rejection, close: boolean, raw: string | null = null): void {
    const id = this.context.newId();
    recordRefusal(this.context, this.#dialect.conn, rejected, { id, raw, head: raw === null ? this.head : null });
    this.#respond(rejected.refusal, id, close);
  }

  #respond(refusal: Refusal, id: string, close: boolean): void {
    this.wire.write(refusalResponse(refusal, id, { close, head: this.head.method === 'HEAD' && !close }));
    if (close) this.#linger();
    else if (this.#state !== HEAD) this.#next();
  }

  /** Ends the connection so that the answer is read before the reset an unread body would cause (RFC 9112 §9.6). */
  #linger(): void {
    if (this.#hasEnded) {
      this.#close();
      return;
    }
    this.#state = LINGER;
    this.#pending = EMPTY;
    this.deadline = this.context.coarseNow() + this.context.limits.stallMs;
    // A slow client is still given what waits for it; the patience for its own end begins after that.
    this.wire.socket.end(() => {
      this.deadline = this.context.coarseNow() + this.context.limits.lingerMs;
    });
    this.wire.resume();
  }

  /** Ends the connection as soon as what was written has left; nothing more is expected from the client. */
  #close(): void {
    this.#state = LINGER;
    this.#pending = EMPTY;
    this.deadline = this.context.coarseNow() + this.context.limits.stallMs;
    this.wire.socket.destroySoon();
  }
}

/** Records a refusal. A full log changes nothing about a refusal; that one is missing is counted, and told later. */
export function recordRefusal(
  context: EgressContext,
  conn: RequestRecord['conn'],
  rejected: Rejection,
  details: {
    id: string;
    raw: string | null;
    head: RequestHead | null;
    kind?: RequestRecord['kind'];
    isAnswered?: boolean;
  },
): void {
  const { refusal, scope, facts, caller } = rejected;
  if (refusal.verdict === 'deny') context.stats.denied++;
  else context.stats.faults++;
  const { head } = details;
  const request =
    facts !== null
      ? requestOf(facts, 0, context.redactor)
      : head === null
        ? null
        : requestAsSent(head.method, scope, head.target(), context.redactor);
  const generation: PolicyGeneration | null = caller?.policy.current ?? null;
  if (!context.audit.reserve()) {
    context.audit.missed();
    return;
  }
  context.audit.request(
    makeRecord({
      kind: details.kind ?? 'http.request',
      id: details.id,
      caller,
      generation,
      ...refusalRecord(refusal),
      conn,
      request,
      raw: details.raw,
      response:
        details.isAnswered === false ? null : { status: refusal.status, bytes: 0, firstByteMs: 0, durationMs: 0 },
    }),
  );
}

/** Stands where no caller is known yet; it owns nothing and no policy. */
const NOBODY = createCaller({ id: '', policy: { name: '', current: null }, token: null });
