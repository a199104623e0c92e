/** After CONNECT: the first bytes decide. A ClientHello for the same name is intercepted, HTTP is judged in the clear, all else ends. */
import { Buffer } from 'node:buffer';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { canonicalHost, decideConnect } from '../../policy/index.ts';
import type { RequestRecord } from '../audit/types.ts';
import type { Caller } from './callers.ts';
import { parseClientHello } from './client-hello.ts';
import type { EgressContext, Revocable, Timed } from './context.ts';
import { nameOf } from './dialer.ts';
import { TOKEN } from './http/bytes.ts';
import type { RequestHead } from './http/request-head.ts';
import type { Memo } from './judge.ts';
import { judge } from './judge.ts';
import { rawEvidence } from './raw-evidence.ts';
import { makeRecord } from './record.ts';
import type { Refusal } from './refusal.ts';
import { deny, fault, misdirected, refusals } from './refusal.ts';
import type { Scope } from './scope.ts';
import { createScope } from './scope.ts';
import type { Dialect } from './session.ts';
import { recordRefusal, Session } from './session.ts';
import type { WireReader } from './wire.ts';
import { UNREAD, Wire } from './wire.ts';

const ESTABLISHED = Buffer.from('HTTP/1.1 200 Connection established\r\n\r\n');
const TLS_HANDSHAKE = 22;

/** Node and Java check the certificate on their own and hang up without an alert (T6). */
const LEFT_DURING_HANDSHAKE = 'the client closed the connection, as one may that does not trust the interception CA';

/** Answers a CONNECT that may lead somewhere, and waits for what the client says first. */
export function openTunnel(context: EgressContext, session: Session, caller: Caller, scope: Scope, src: string): void {
  const rest = session.leave();
  const opening = new TunnelOpening(context, session.wire, caller, scope, src);
  session.wire.write(ESTABLISHED);
  if (rest.length > 0) opening.onBytes(rest, rest.length);
  session.wire.resume();
}

class TunnelOpening implements WireReader, Timed, Revocable {
  readonly caller: Caller;
  deadline: number;
  readonly #context: EgressContext;
  readonly #wire: Wire;
  readonly #scope: Scope;
  readonly #conn: RequestRecord['conn'];
  #received = Buffer.alloc(0);
  #isOver = false;

  constructor(context: EgressContext, wire: Wire, caller: Caller, scope: Scope, src: string) {
    this.#context = context;
    this.#wire = wire;
    this.caller = caller;
    this.#scope = scope;
    this.#conn = { via: 'connect', src, sni: null, alpn: null, tls: null };
    this.deadline = context.coarseNow() + context.limits.handshakeMs;
    wire.reader = this;
    context.timed.add(this);
    context.sessions.add(this);
  }

  onBytes(buf: Buffer, length: number): boolean {
    if (this.#isOver) return false;
    this.#received = Buffer.concat([this.#received, buf.subarray(0, length)]);
    try {
      return this.#look();
    } catch (error) {
      this.#context.onFault('tunnel', error);
      this.destroy();
      return false;
    }
  }

  onEnd(): void {
    this.destroy();
  }

  onDrain(): void {}

  /** A tunnel nobody used is still a decision: it was allowed, and nothing passed. */
  onClose(): void {
    if (this.#isOver) return;
    this.#leave();
    this.#record('tcp.connect', fault(0, 'tunnel_unused', 'The client opened a tunnel and sent no request.'), null);
  }

  onDeadline(): void {
    this.destroy();
  }

  revoke(): void {
    if (!mayOpen(this.caller, this.#scope)) this.destroy();
  }

  stop(): void {
    this.destroy();
  }

  destroy(): void {
    this.#wire.destroy();
  }

  #look(): boolean {
    const first = this.#received[0] ?? 0;
    if (first === TLS_HANDSHAKE) return this.#lookAtHello();
    if (TOKEN[first] === 1) return this.#plain();
    this.#end(refusals.rawOnTunnel, rawEvidence(this.#received));
    return false;
  }

  #lookAtHello(): boolean {
    const hello = parseClientHello(this.#received, this.#context.limits.helloBytes);
    if (hello.kind === 'incomplete') return true;
    if (hello.kind === 'malformed') {
      this.#end(
        deny(400, 'client_hello_malformed', `The TLS ClientHello is ${hello.reason}.`),
        rawEvidence(this.#received),
      );
      return false;
    }
    const mismatch = this.#checkServerName(hello.serverName);
    if (mismatch !== null) {
      this.#end(mismatch, null, hello.serverName);
      return false;
    }
    this.#intercept(hello.serverName);
    return true;
  }

  /** Absent, or an address (which RFC 6066 forbids there): the CONNECT name holds (H4). Another name ends here, before a leaf is minted (H3). */
  #checkServerName(serverName: string | null): Refusal | null {
    if (serverName === null) return null;
    const host = canonicalHost(serverName);
    const expected = this.#scope.destination;
    if (host.ok && host.value.kind === 'address') return null;
    if (host.ok && expected.kind === 'name' && nameOf(host.value) === expected.name) return null;
    return misdirected(`The TLS server name is not ${nameOf(expected)}, which the connection is for.`);
  }

  #intercept(serverName: string | null): void {
    this.#leave();
    const raw = this.#wire.socket;
    // The raw socket's own reader must see nothing more: TLS takes the handle over, and starts with what was read already.
    detachReader(raw);
    raw.unshift(this.#received);
    // A client that leaves in the middle of the handshake has left, and is recorded at once.
    raw.allowHalfOpen = false;
    const socket = new TLSSocket(raw, {
      isServer: true,
      secureContext: this.#context.ca.secureContextFor(nameOf(this.#scope.destination)),
      ALPNProtocols: ['http/1.1'],
    });
    const handshake = new Handshake(this.#context, this.caller, this.#scope, { ...this.#conn, sni: serverName });
    handshake.start(socket, raw);
  }

  /** HTTP in the clear through CONNECT: some clients tunnel http URLs, too; only rules with `scheme: http` allow them. */
  #plain(): boolean {
    this.#leave();
    const { destination, port } = this.#scope;
    const dialect = new TunnelDialect(this.#context, this.caller, createScope('http', destination, port), this.#conn);
    return new Session(this.#context, this.#wire, dialect).onBytes(this.#received, this.#received.length);
  }

  #leave(): void {
    this.#isOver = true;
    this.#context.timed.delete(this);
    this.#context.sessions.delete(this);
  }

  #end(refusal: Refusal, raw: string | null, serverName: string | null = null): void {
    this.#leave();
    this.#record('tls.handshake', refusal, raw, serverName);
    this.destroy();
  }

  #record(kind: RequestRecord['kind'], refusal: Refusal, raw: string | null, serverName: string | null = null): void {
    recordTunnel(
      this.#context,
      { caller: this.caller, scope: this.#scope, conn: { ...this.#conn, sni: serverName } },
      kind,
      refusal,
      raw,
    );
  }
}

/** A TLS handshake with the client under way; then its requests. */
class Handshake implements Timed, Revocable {
  readonly caller: Caller;
  deadline: number;
  readonly #context: EgressContext;
  readonly #scope: Scope;
  readonly #conn: RequestRecord['conn'];
  #socket: TLSSocket | null = null;

  constructor(context: EgressContext, caller: Caller, scope: Scope, conn: RequestRecord['conn']) {
    this.#context = context;
    this.caller = caller;
    this.#scope = scope;
    this.#conn = conn;
    this.deadline = context.coarseNow() + context.limits.handshakeMs;
  }

  start(socket: TLSSocket, raw: Socket): void {
    this.#socket = socket;
    this.#context.timed.add(this);
    this.#context.sessions.add(this);
    socket.once('secure', () => this.#onSecure(socket, raw));
    socket.on('error', (error) => this.#onFailure(error));
    socket.once('close', () => this.#onFailure(new Error(LEFT_DURING_HANDSHAKE)));
  }

  onDeadline(): void {
    this.#onFailure(new Error('deadline passed'));
  }

  revoke(): void {
    if (!mayOpen(this.caller, this.#scope)) this.destroy();
  }

  stop(): void {
    this.destroy();
  }

  destroy(): void {
    this.#onFailure(new Error('cut by the gateway'));
  }

  #onSecure(socket: TLSSocket, raw: Socket): void {
    this.#leave();
    socket.removeAllListeners('error');
    const conn = { ...this.#conn, tls: socket.getProtocol(), alpn: socket.alpnProtocol || null };
    const dialect = new TunnelDialect(this.#context, this.caller, this.#scope, conn);
    const wire = new Wire(socket, UNREAD, this.#context.wireMode, null, raw);
    new Session(this.#context, wire, dialect);
  }

  #onFailure(error: Error): void {
    if (!this.#leave()) return;
    this.#context.stats.handshakeFailures++;
    const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
    const refusal = /UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_UNKNOWN/i.test(code)
      ? rejectedCa()
      : fault(0, 'tls_handshake_failed', `The TLS handshake with the client failed (${code || error.message}).`);
    recordTunnel(
      this.#context,
      { caller: this.caller, scope: this.#scope, conn: this.#conn },
      'tls.handshake',
      refusal,
      null,
    );
    this.#socket?.destroy();
  }

  /** False when it was over already. */
  #leave(): boolean {
    this.#context.sessions.delete(this);
    return this.#context.timed.delete(this);
  }
}

/** Every request of a tunnel is for the tunnel's own scope. */
class TunnelDialect implements Dialect {
  readonly caller: Caller;
  readonly scope: Scope;
  readonly conn: RequestRecord['conn'];
  readonly #context: EgressContext;
  readonly #memo: Memo = { last: null, raw: Buffer.alloc(0) };

  constructor(context: EgressContext, caller: Caller, scope: Scope, conn: RequestRecord['conn']) {
    this.#context = context;
    this.caller = caller;
    this.scope = scope;
    this.conn = conn;
  }

  judge(_session: Session, head: RequestHead): ReturnType<Dialect['judge']> {
    const { caller, scope } = this;
    if (head.method === 'CONNECT') return { refusal: refusals.notAProxyRequest, scope, facts: null, caller };
    if (!caller.isAttached) return { refusal: refusals.callerUnknown, scope, facts: null, caller };
    const judged = judge(this.#context, caller, head, scope, null, this.#memo);
    return 'refusal' in judged ? { ...judged, caller } : judged;
  }

  /** The same, with the handshake just done. */
  onUnused(): void {
    const { caller, scope, conn } = this;
    const reason = 'The client sent no request. One that does not trust the interception CA may leave like that.';
    recordTunnel(this.#context, { caller, scope, conn }, 'tls.handshake', fault(0, 'tunnel_unused', reason), null);
  }
}

/** The newest policy would open this tunnel. */
function mayOpen(caller: Caller, scope: Scope): boolean {
  const policy = caller.policy.current?.compiled ?? null;
  return decideConnect(policy, scope.destination, scope.port).verdict !== 'deny';
}

interface TunnelEnd {
  readonly caller: Caller;
  readonly scope: Scope;
  readonly conn: RequestRecord['conn'];
}

/** A tunnel that ended before a request: recorded as the connection it was. */
function recordTunnel(
  context: EgressContext,
  end: TunnelEnd,
  kind: RequestRecord['kind'],
  refusal: Refusal,
  raw: string | null,
): void {
  const { caller, scope, conn } = end;
  if (refusal.status > 0) {
    recordRefusal(
      context,
      conn,
      { refusal, scope, facts: null, caller },
      { id: context.newId(), raw, head: null, kind, isAnswered: false },
    );
    return;
  }
  if (!context.audit.reserve()) {
    context.audit.missed();
    return;
  }
  const { scheme, port } = scope;
  const request = { method: 'CONNECT', scheme, host: nameOf(scope.destination), port, path: '', query: null, bytes: 0 };
  const verdict = refusal.code === 'tunnel_unused' ? 'allow' : 'error';
  const { code, reason, rule } = refusal;
  const generation = caller.policy.current;
  context.audit.request(
    makeRecord({ kind, id: context.newId(), caller, generation, verdict, rule, code, reason, conn, request, raw }),
  );
}

function rejectedCa(): Refusal {
  return fault(
    0,
    'tls_client_rejected_ca',
    'The client does not trust the interception CA. Give it the bundle: `sallyport ca export`, or the CA variables `sallyport run` sets.',
  );
}

/** Gives a socket back its normal reading, paused, whichever way the wire read it. */
function detachReader(socket: Socket): void {
  Reflect.deleteProperty(socket, 'push');
  socket.removeAllListeners('data');
  socket.removeAllListeners('end');
  socket.pause();
}
