/** One allowed request and its response: credential opened, upstream taken, bytes moved both ways, one record written. */

import type { CompiledCredential } from '../../policy/index.ts';
import { decide } from '../../policy/index.ts';
import type { PreparedCredential } from '../../vault/index.ts';
import { VaultError } from '../../vault/index.ts';
import type { AuditVerdict, RequestRecord, SettledRecord } from '../audit/types.ts';
import type { Caller } from './callers.ts';
import type { EgressContext } from './context.ts';
import { DialRefused, nameOf } from './dialer.ts';
import type { RequestHead } from './http/request-head.ts';
import type { Judged } from './judge.ts';
import { requestOf } from './record.ts';
import type { Refusal } from './refusal.ts';
import { deny, fault, refusals } from './refusal.ts';
import { RequestBody } from './request-body.ts';
import { ResponseRelay } from './response-relay.ts';
import { rewriteRoom, writeRequestHead } from './rewrite.ts';
import type { Lane, Upstream, UpstreamOwner } from './upstream-pool.ts';
import type { Wire } from './wire.ts';

/** What an exchange needs of the connection it serves. */
export interface ExchangeClient {
  readonly context: EgressContext;
  readonly wire: Wire;
  readonly head: RequestHead;
  readonly record: Pick<RequestRecord, 'conn'> & { readonly caller: Caller };
  /** Where connections for this request wait. */
  laneFor(judged: Judged): Lane;
  /** Time-outs of the exchange run on the connection's deadline. */
  setDeadline(at: number): void;
  /** The request body may be read on. */
  readOn(): void;
  /** Answer with this refusal instead; the record was written. */
  answer(refusal: Refusal, id: string): void;
  /** The exchange is over; false = the connection cannot be used for another. */
  finished(isReusable: boolean): void;
}

/** Methods that may be sent again when a kept connection turns out to be closed (RFC 9110 §9.2.2), without a body. */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Shared by all exchanges: a head is written and handed to TLS (which copies it) in one turn of the event loop. */
let scratch = Buffer.alloc(0);

export class Exchange implements UpstreamOwner, SettledRecord {
  readonly body: RequestBody;
  readonly #client: ExchangeClient;
  readonly #context: EgressContext;
  readonly #judged: Judged;
  readonly #lane: Lane;
  readonly #started = performance.now();
  readonly #flow = { isFull: false };
  #credentials: readonly PreparedCredential[] = [];
  #upstream: Upstream | null = null;
  #upstreamRecord: RequestRecord['upstream'] = null;
  #relay: ResponseRelay | null = null;
  #isReused = false;
  #outcome: Outcome | null = null;
  #id = '';
  #status: number | null = null;
  #endedAt = 0;
  /** The client's, as it was when the exchange began: a connection's next request may be another caller's. */
  readonly #record: ExchangeClient['record'];
  #isOver = false;

  constructor(client: ExchangeClient, judged: Judged) {
    this.#client = client;
    this.#context = client.context;
    this.#judged = judged;
    this.#record = client.record;
    this.#lane = client.laneFor(judged);
    this.body = RequestBody.of(client.head);
  }

  /**
   * Sends at once when credential and connection are at hand, else as soon as they are.
   * `buf[start..end)` may begin with body bytes; returns how many were taken.
   */
  start(buf: Buffer, start: number, end: number): number {
    const credentials = this.#readyCredentials();
    const upstream = credentials === null ? null : this.#context.pool.take(this.#lane);
    if (credentials === null || upstream === null) {
      void this.#startLater(false);
      return 0;
    }
    this.#credentials = credentials;
    this.#context.stats.upstreamReuses++;
    this.#isReused = true;
    return this.#send(upstream, buf, start, end);
  }

  /** True while body bytes can be forwarded. */
  get takesBody(): boolean {
    return this.#upstream !== null && !this.body.done;
  }

  /** Forwards body bytes; returns the offset behind them, or -1 when the exchange ended over them. */
  onRequestBytes(buf: Buffer, start: number, end: number): number {
    const upstream = this.#upstream;
    if (upstream === null) return start;
    const stop = this.body.forward(buf, start, end, upstream.wire, this.#flow);
    if (stop >= 0) this.#touch();
    else {
      const { tooLarge, failure } = this.body;
      this.#failWith(
        deny(
          tooLarge ? 413 : 400,
          tooLarge ? 'body_framing_too_large' : 'chunk_malformed',
          `The request body has ${failure}.`,
          'Send plain chunks, or a Content-Length.',
        ),
      );
    }
    return stop;
  }

  /** The upstream is slower than the client. */
  get isFull(): boolean {
    return this.#flow.isFull;
  }

  onUpstreamDrain(): void {
    this.#flow.isFull = false;
    this.#touch();
    this.#client.readOn();
  }

  onClientDrain(): void {
    this.#touch();
    this.#upstream?.wire.resume();
  }

  onUpstreamBytes(buf: Buffer, length: number): boolean {
    const relay = this.#relay;
    if (relay === null || this.#isOver) return true;
    const goesOn = this.#relayBytes(relay, buf, length);
    if (relay.failure !== '') this.#responseFailed(relay.failure);
    else if (relay.done) this.#complete();
    else this.#touch();
    // A pause for a slow client must not outlive the exchange: the connection may be another's by now.
    return goesOn || this.#isOver;
  }

  /** Nothing an upstream sends may end the process. */
  #relayBytes(relay: ResponseRelay, buf: Buffer, length: number): boolean {
    try {
      return relay.onBytes(buf, length);
    } catch (error) {
      this.#context.onFault('relay', error);
      relay.failure = 'bytes that could not be relayed';
      return false;
    }
  }

  onUpstreamEnd(): void {
    if (this.#relay?.endsWithConnection === true) {
      this.#relay.end();
      this.#complete();
      return;
    }
    this.#lost();
  }

  onUpstreamClose(): void {
    this.#upstream = null;
    if (!this.#isOver) this.#lost();
  }

  /** The client is gone: nobody waits for the rest. */
  onClientClose(): void {
    if (this.#isOver) return;
    const reason = 'The client closed the connection before the response was complete.';
    this.#settle({ verdict: 'error', code: 'client_aborted', reason, rule: this.#judged.decision.rule });
    this.#drop();
  }

  onDeadline(): void {
    if (this.#isOver) return;
    const name = nameOf(this.#judged.scope.destination);
    if (this.#relay?.headSent === true || !this.body.done)
      this.#abandon('stalled', 'Neither side moved a byte for too long.');
    else
      this.#failWith(fault(504, 'upstream_timeout', `${name} did not answer in time.`, 'Try again, or ask for less.'));
  }

  /** Cuts the exchange when the newest policy would not allow it (O3). */
  revoke(): void {
    const generation = this.#record.caller.policy.current;
    const decision = decide(generation?.compiled ?? null, this.#judged.facts);
    if (this.#isOver) return;
    if (decision.verdict === 'allow') {
      // Not sent yet: a credential that the newest policy would not give must not leave after it.
      if (this.#upstream !== null || sameCredentials(this.#judged.decision.credentials, decision.credentials)) return;
    }
    this.#abandon('policy_revoked', `A newer policy does not allow this request: ${decision.reason}`, 'deny');
  }

  /** Ends the client's connection in the middle of its response, so that it can tell. */
  cutClient(): void {
    const { wire } = this.#client;
    if (this.#relay?.isEndedByClose === true) wire.abort();
    else wire.destroy();
  }

  #readyCredentials(): readonly PreparedCredential[] | null {
    const { inject } = this.#judged;
    if (inject.length === 0) return NONE;
    const ready: PreparedCredential[] = [];
    for (const credential of inject) {
      const prepared = this.#context.credentials.ready(credential);
      if (prepared === undefined) return null;
      ready.push(prepared);
    }
    return ready;
  }

  /** A repeated request gets a connection of its own: what one kept connection ran into, the others may as well. */
  async #startLater(isRepeat: boolean): Promise<void> {
    try {
      this.#credentials = await Promise.all(
        this.#judged.inject.map((credential) => this.#context.credentials.prepare(credential)),
      );
      if (this.#isOver) return;
      const kept = isRepeat ? null : this.#context.pool.take(this.#lane);
      this.#isReused = kept !== null;
      const upstream = kept ?? (await this.#dial());
      if (this.#isOver) this.#context.pool.put(upstream);
      else this.#send(upstream, this.#client.head.buf, 0, 0);
      this.#client.readOn();
    } catch (error) {
      this.#failWith(this.#startRefusal(error));
    }
  }

  #startRefusal(error: unknown): Refusal {
    if (error instanceof DialRefused) return error.refusal;
    if (error instanceof VaultError) {
      this.#context.onFault('credential', error);
      return refusals.credentialUnavailable;
    }
    this.#context.onFault('exchange', error);
    return refusals.internal;
  }

  async #dial(): Promise<Upstream> {
    const { scope, generation } = this.#judged;
    const context = this.#context;
    const name = nameOf(scope.destination);
    const pin = this.#record.caller.pins.get(name) ?? context.pins.get(name);
    context.stats.upstreamDials++;
    const { scheme, destination, port } = scope;
    const dialled = await context.dialer.dial({ scheme, destination, port, policy: generation.compiled, pin });
    if (dialled.droppedAnswers.length > 0) {
      context.audit.event({
        kind: 'dns.finding',
        code: 'mixed_answers',
        reason: `${name} also stands for addresses that are refused.`,
        sandbox: this.#record.caller.info,
        detail: { name, dropped: dialled.droppedAnswers },
      });
    }
    return context.pool.add(this.#lane, dialled, context.wireMode);
  }

  #send(upstream: Upstream, buf: Buffer, start: number, end: number): number {
    const { head } = this.#client;
    this.#upstream = upstream;
    this.#upstreamRecord = upstream.record;
    upstream.owner = this;
    upstream.uses++;
    const room = rewriteRoom(head, this.#judged, this.#credentials);
    const taken = this.body.takeWithHead(Math.min(end - start, 16 * 1024));
    if (scratch.length < room + taken) scratch = Buffer.alloc(2 * (room + taken));
    let length = writeRequestHead(scratch, head, this.#judged, this.#credentials);
    if (taken > 0) length += buf.copy(scratch, length, start, start + taken);
    const bytes = scratch.subarray(0, length);
    // TLS encrypts (copies) at once when nothing waits; a plain socket may keep the memory until the kernel takes it.
    const isCopied = upstream.wire.isEncrypted && upstream.wire.isIdle;
    this.#flow.isFull = !upstream.wire.write(isCopied ? bytes : Buffer.from(bytes));
    this.#relay = new ResponseRelay(this.#client, this.#judged, this.#credentials, this.body);
    this.#touch();
    return taken;
  }

  /** The upstream is gone before the response was complete. */
  #lost(): void {
    if (this.#isOver) return;
    const canRepeat =
      this.#isReused &&
      this.#relay?.hasBytes === false &&
      this.#client.head.contentLength <= 0 &&
      !this.#client.head.chunked;
    if (canRepeat && REPEATABLE.has(this.#judged.facts.method)) {
      this.#detach();
      void this.#startLater(true);
      return;
    }
    this.#responseFailed('an end before it was complete', 'upstream_reset');
  }

  #responseFailed(what: string, code = 'upstream_malformed'): void {
    const reason = `${nameOf(this.#judged.scope.destination)} sent a response with ${what}.`;
    if (this.#relay?.headSent === true) this.#abandon(code, reason);
    else this.#failWith(fault(502, code, reason, 'The server, not the policy, failed here.'));
  }

  /** Too late for an answer: both sides are cut, so that nobody takes a part for the whole. */
  #abandon(code: string, reason: string, verdict: AuditVerdict = 'error'): void {
    this.#settle({ verdict, code, reason, rule: this.#judged.decision.rule });
    this.#drop();
    this.cutClient();
  }

  #failWith(refusal: Refusal): void {
    if (this.#isOver) return;
    const isHeadSent = this.#relay?.headSent === true;
    const id = this.#context.newId();
    this.#settle(refusal, id, isHeadSent ? null : refusal.status);
    this.#drop();
    if (isHeadSent) this.cutClient();
    else this.#client.answer(refusal, id);
  }

  #complete(): void {
    const relay = this.#relay;
    const upstream = this.#upstream;
    if (relay === null || this.#isOver) return;
    this.#isOver = true;
    this.#settle(this.#judged.decision);
    this.#upstream = null;
    if (upstream !== null) {
      if (relay.isUpstreamReusable && this.body.done) this.#context.pool.put(upstream);
      else this.#release(upstream);
    }
    this.#client.finished(relay.isClientReusable && this.body.done);
  }

  /** Settles what the exchange's one record says; it is put together when its turn comes. */
  #settle(outcome: Outcome, id = '', status: number | null = null): void {
    if (this.#outcome !== null) return;
    this.#outcome = outcome;
    this.#id = id;
    this.#status = status;
    this.#endedAt = performance.now();
    this.#context.audit.request(this);
  }

  toRecord(): RequestRecord {
    const { facts, decision, generation } = this.#judged;
    const { verdict, code, reason, rule } = this.#outcome ?? decision;
    const { caller, conn } = this.#record;
    const redactions = this.#relay?.redactions ?? 0;
    this.#context.stats.redactions += redactions;
    return {
      kind: 'http.request',
      id: this.#id === '' ? this.#context.newId() : this.#id,
      sandbox: caller.info,
      policy: generation.info,
      verdict,
      rule,
      code,
      reason,
      conn,
      request: requestOf(facts, this.body.bytes, this.#context.redactor),
      raw: null,
      upstream: this.#upstreamRecord,
      response: this.#responseRecord(),
      credential: this.#credentials.length === 0 ? null : credentialRecord(this.#credentials),
      redactions,
    };
  }

  #responseRecord(): RequestRecord['response'] {
    const relay = this.#relay;
    const durationMs = round(this.#endedAt - this.#started);
    if (relay?.headSent !== true) {
      return this.#status === null ? null : { status: this.#status, bytes: 0, firstByteMs: 0, durationMs };
    }
    const firstByteMs = relay.firstByteAt === 0 ? 0 : round(relay.firstByteAt - this.#started);
    return { status: relay.status, bytes: relay.bytes, firstByteMs, durationMs };
  }

  /** While bytes should move, a stall ends the exchange; a model that thinks may take longer. */
  #touch(): void {
    const { responseHeadMs, stallMs } = this.#context.limits;
    const isAwaitingResponse = this.body.done && this.#relay?.headSent !== true;
    this.#client.setDeadline(this.#context.coarseNow() + (isAwaitingResponse ? responseHeadMs : stallMs));
  }

  #drop(): void {
    this.#isOver = true;
    this.#detach();
  }

  #detach(): void {
    const upstream = this.#upstream;
    this.#upstream = null;
    if (upstream !== null) this.#release(upstream);
  }

  #release(upstream: Upstream): void {
    upstream.owner = null;
    upstream.destroy();
  }
}

/** What became of the request: the decision itself when all went well. */
type Outcome = Pick<RequestRecord, 'verdict' | 'code' | 'reason' | 'rule'>;

const NONE: readonly PreparedCredential[] = [];

function sameCredentials(some: readonly CompiledCredential[], others: readonly CompiledCredential[]): boolean {
  const keyOf = ({ slot, spec }: CompiledCredential) => JSON.stringify([slot, spec.name, spec.secret, spec.inject]);
  return some.map(keyOf).join() === others.map(keyOf).join();
}

/** Milliseconds with three digits: what a log reader wants and a clock can tell. */
function round(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}

const credentialRecords = new WeakMap<PreparedCredential, NonNullable<RequestRecord['credential']>>();

function credentialRecord(credentials: readonly PreparedCredential[]): NonNullable<RequestRecord['credential']> {
  const [first] = credentials;
  const known = first === undefined || credentials.length > 1 ? undefined : credentialRecords.get(first);
  if (known !== undefined) return known;
  const record = {
    name: credentials.map((one) => one.name).join(','),
    version: credentials.map((one) => one.version).join(','),
    slots: credentials.map((one) => one.slot),
  };
  if (first !== undefined && credentials.length === 1) credentialRecords.set(first, record);
  return record;
}
