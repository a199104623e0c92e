/** The explicit proxy: absolute-form requests are judged here, CONNECT opens a tunnel. */

import { canonicalAuthority, decideConnect } from '../../policy/index.ts';
import type { RequestRecord } from '../audit/types.ts';
import type { Caller } from './callers.ts';
import type { EgressContext } from './context.ts';
import { H } from './http/header-block.ts';
import type { RequestHead } from './http/request-head.ts';
import { decisionRefusal, judge, selfTestRefusal } from './judge.ts';
import type { Refusal } from './refusal.ts';
import { refusals } from './refusal.ts';
import type { Scope } from './scope.ts';
import { createScope, hostRefusal, malformed, parseAbsolute } from './scope.ts';
import type { Dialect, Rejection, Session } from './session.ts';
import { openTunnel } from './tunnel.ts';

export class ProxyDialect implements Dialect {
  readonly conn: RequestRecord['conn'];
  readonly caller: Caller | null;
  readonly scope = null;
  readonly #context: EgressContext;
  /** The Proxy-Authorization value seen last on this connection, and whom it stands for. */
  #lastValue: string | null = null;
  #lastCaller: Caller | null = null;
  /** Whose connections this one is counted among. */
  #counted: Caller | null = null;

  /** `caller` is known when the connection came through its own socket. */
  constructor(context: EgressContext, src: string, caller: Caller | null) {
    this.#context = context;
    this.caller = caller;
    this.conn = { via: 'absolute', src, sni: null, alpn: null, tls: null };
  }

  judge(session: Session, head: RequestHead): ReturnType<Dialect['judge']> {
    const caller = this.caller === null ? this.#authenticate(head) : attached(this.caller);
    if (caller === null) return reject(refusals.callerUnknown, null, null);
    if (!this.#count(session, caller)) return reject(refusals.tooManyConnections, null, caller);
    return head.method === 'CONNECT' ? this.#connect(session, head, caller) : this.#absolute(head, caller);
  }

  #absolute(head: RequestHead, caller: Caller): ReturnType<Dialect['judge']> {
    const target = head.target();
    if (target === '*') return reject(refusals.optionsAsterisk, null, caller);
    if (target.includes('#'))
      return reject(
        { ...refusals.notAProxyRequest, code: 'target_fragment', reason: 'A request target has no fragment.' },
        null,
        caller,
      );
    const absolute = parseAbsolute(target);
    if ('refusal' in absolute) return reject(absolute.refusal, null, caller);
    if (absolute.scope.scheme === 'https') return reject(refusals.httpsAbsolute, absolute.scope, caller);
    const judged = judge(this.#context, caller, head, absolute.scope, absolute.origin, null);
    return 'refusal' in judged ? { ...judged, caller } : judged;
  }

  /** RFC 9110 §9.3.6: authority-form with a port, no body; Host, if any, names the same. */
  #connect(session: Session, head: RequestHead, caller: Caller): ReturnType<Dialect['judge']> {
    if (head.contentLength > 0 || head.chunked) return reject(refusals.connectBody, null, caller);
    const authority = canonicalAuthority(head.target(), null);
    if (!authority.ok) return reject(malformed(authority), null, caller);
    const { destination, port } = authority.value;
    const scope = createScope('https', destination, port);
    const mismatch = this.#hostOfConnect(head, scope);
    if (mismatch !== null) return reject(mismatch, scope, caller);
    const refusing = caller.isSelfTest ? null : this.#context.refusing();
    if (refusing !== null) return reject(selfTestRefusal(refusing), scope, caller);
    const decision = decideConnect(caller.policy.current?.compiled ?? null, destination, port);
    if (decision.verdict === 'deny') return reject(decisionRefusal(decision), scope, caller);
    openTunnel(this.#context, session, caller, scope, this.conn.src);
    return 'taken';
  }

  /** Clients differ in whether they repeat the port in the Host of a CONNECT, so a bare name counts as the same. */
  #hostOfConnect(head: RequestHead, scope: Scope): Refusal | null {
    if (head.host < 0) return null;
    const value = head.headers.value(head.buf, head.host);
    const refusal = hostRefusal(value, scope, 400);
    return refusal === null || hostRefusal(`${value}:${scope.port}`, scope, 400) === null ? null : refusal;
  }

  #authenticate(head: RequestHead): Caller | null {
    const line = head.headers.find(H.PROXY_AUTHORIZATION);
    if (line < 0) return null;
    const value = head.headers.value(head.buf, line);
    if (value !== this.#lastValue) {
      this.#lastValue = value;
      this.#lastCaller = this.#context.callers.authenticate(value);
    }
    return attached(this.#lastCaller);
  }

  /** Counts the connection as the caller's until it closes; false = it has too many. One of its own socket was counted when it came. */
  #count(session: Session, caller: Caller): boolean {
    if (caller === this.#counted || this.caller !== null) return true;
    if (caller.connections >= this.#context.limits.connectionsPerCaller) return false;
    if (this.#counted === null) session.wire.socket.once('close', () => this.#uncount());
    this.#uncount();
    this.#counted = caller;
    caller.connections++;
    return true;
  }

  #uncount(): void {
    if (this.#counted !== null) this.#counted.connections--;
    this.#counted = null;
  }
}

/** A caller may have been detached since its connection came. */
function attached(caller: Caller | null): Caller | null {
  return caller?.isAttached === true ? caller : null;
}

function reject(refusal: Refusal, scope: Scope | null, caller: Caller | null): Rejection {
  return { refusal, scope, facts: null, caller };
}
