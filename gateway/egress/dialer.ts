/** From a judged destination to a verified connection: one lookup, every answer classified, exactly a vetted address dialled. */
import { readFileSync } from 'node:fs';
import net from 'node:net';
import { networkInterfaces } from 'node:os';
import tls from 'node:tls';
import type { CompiledPolicy, Destination, Scheme } from '../../policy/index.ts';
import { judgeAddress } from '../../policy/index.ts';
import type { EgressConfig, PinnedUpstream } from '../types.ts';
import type { EgressLimits } from './limits.ts';
import { openTunnel } from './parent-proxy.ts';
import type { Refusal } from './refusal.ts';
import { deny, fault } from './refusal.ts';
import type { Resolve } from './resolver.ts';
import type { ReadSink } from './wire.ts';

export interface DialTarget {
  readonly scheme: Scheme;
  readonly destination: Destination;
  readonly port: number;
  readonly policy: CompiledPolicy;
  readonly pin: PinnedUpstream | undefined;
}

/** A connection whose peer is proven; nothing was sent on it yet. */
export interface Dialled {
  readonly socket: net.Socket;
  /** `address:port` really dialled. */
  readonly address: string;
  readonly tls: string | null;
  readonly certSha256: string | null;
  readonly connectMs: number;
  /** Answers of the lookup that were refused while another was dialled: a finding (D12). */
  readonly droppedAnswers: readonly string[];
  /** Where its bytes arrive when it reads into the shared buffer; null = through the socket. */
  readonly sink: ReadSink | null;
}

export interface DialerOptions {
  readonly egress: EgressConfig;
  readonly limits: EgressLimits;
  readonly resolve: Resolve;
  /** `address:port` of this gateway's own listeners: never dialled, not even for a pinned name (O8). */
  readonly isOwnListener: (address: string, port: number) => boolean;
  /** Direct connections read into this one buffer (see Wire); absent = each read has its own memory. */
  readonly sharedBuffer?: Buffer;
}

/** How long the list of this host's own addresses is believed. */
const OWN_ADDRESSES_MS = 5_000;

/** Upstream TLS sessions kept for resumption. */
const MAX_SESSIONS = 1_000;

export class DialRefused extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.reason);
    this.name = 'DialRefused';
    this.refusal = refusal;
  }
}

export class Dialer {
  readonly #options: DialerOptions;
  readonly #contexts = new Map<string, tls.SecureContext>();
  readonly #sessions = new Map<string, Buffer>();
  readonly #extraCa: string | null;
  #own: readonly string[] = [];
  #ownUntil = 0;

  /** Reads the trusted CA files once; a missing one fails here, at start, not at the first request. */
  constructor(options: DialerOptions) {
    this.#options = options;
    this.#extraCa = options.egress.extraCa === null ? null : readFileSync(options.egress.extraCa, 'utf8');
    this.#context(null);
  }

  /** @throws DialRefused with the refusal to answer with. */
  async dial(target: DialTarget): Promise<Dialled> {
    const started = performance.now();
    const abort = AbortSignal.timeout(this.#options.limits.connectMs);
    const { addresses, dropped } = await this.#vetted(target, abort);
    const port = target.pin?.port ?? target.port;
    let last: unknown;
    for (const address of addresses) {
      if (this.#options.isOwnListener(address, port)) throw new DialRefused(loop(target));
      try {
        const sink = this.#sink(target);
        const socket = await this.#connect(target, address, port, sink, abort);
        const connectMs = Math.round(performance.now() - started);
        return {
          socket,
          address: hostPort(address, port),
          ...proofOf(socket),
          connectMs,
          droppedAnswers: dropped,
          sink,
        };
      } catch (error) {
        last = error;
        if (abort.aborted || isTlsFault(error)) break;
      }
    }
    throw new DialRefused(dialFailure(last, target, abort.aborted));
  }

  /** The addresses that may be dialled. A pinned one is the operator's word; every other passes the never-list. */
  async #vetted(
    target: DialTarget,
    abort: AbortSignal,
  ): Promise<{ addresses: readonly string[]; dropped: readonly string[] }> {
    if (target.pin !== undefined) return { addresses: [target.pin.address], dropped: [] };
    const { destination } = target;
    const answers =
      destination.kind === 'address' ? [destination.address] : await this.#lookUp(destination.name, abort);
    const addresses: string[] = [];
    const dropped: string[] = [];
    let worst: Refusal | null = null;
    for (const answer of answers) {
      const verdict = judgeAddress(target.policy, answer, this.#ownAddresses());
      if (verdict.allowed) addresses.push(answer);
      else {
        dropped.push(answer);
        worst ??= deny(
          403,
          verdict.code,
          `${nameOf(destination)} stands for an address that is refused: ${verdict.reason}`,
          'Only the operator can pin a name to such an address.',
        );
      }
    }
    if (addresses.length > 0) return { addresses, dropped };
    throw new DialRefused(
      worst ?? fault(502, 'dns_failed', `${nameOf(destination)} has no address.`, 'Check the name.'),
    );
  }

  async #lookUp(name: string, abort: AbortSignal): Promise<readonly string[]> {
    try {
      return await orAborted(this.#options.resolve(name), abort);
    } catch {
      const refusal = abort.aborted
        ? fault(504, 'dns_timeout', `${name} could not be looked up in time.`, 'Try again shortly.')
        : fault(502, 'dns_failed', `${name} could not be looked up.`, 'Check the name.');
      throw new DialRefused(refusal);
    }
  }

  async #connect(
    target: DialTarget,
    address: string,
    port: number,
    sink: ReadSink | null,
    abort: AbortSignal,
  ): Promise<net.Socket> {
    const parent = this.#isDirect(target) ? null : this.#options.egress.parentProxy;
    const tunnel = parent === null ? null : await openTunnel(parent, hostPort(address, port), abort);
    if (target.scheme === 'http') return tunnel ?? (await this.#connectPlain(address, port, sink, abort));
    return await this.#connectTls(target, address, port, { tunnel, sink }, abort);
  }

  /** A pinned destination is reached directly; every other through the parent proxy where there is one. */
  #isDirect(target: DialTarget): boolean {
    return target.pin !== undefined || this.#options.egress.parentProxy === null;
  }

  #connectPlain(address: string, port: number, sink: ReadSink | null, abort: AbortSignal): Promise<net.Socket> {
    const socket = net.connect({ host: address, port, noDelay: true, ...this.#onread(sink) });
    return settled(socket, 'connect', abort);
  }

  #connectTls(
    target: DialTarget,
    address: string,
    port: number,
    via: { tunnel: net.Socket | null; sink: ReadSink | null },
    abort: AbortSignal,
  ): Promise<net.Socket> {
    const name = target.destination.kind === 'name' ? target.destination.name : null;
    const key = `${name ?? address}|${address}|${port}`;
    const session = this.#sessions.get(key);
    const socket = tls.connect({
      ...(via.tunnel === null ? { host: address, port, ...this.#onread(via.sink) } : { socket: via.tunnel }),
      // For an address, identity is checked against the certificate's IP entries; SNI must not carry one (RFC 6066 §3).
      ...(name === null
        ? { checkServerIdentity: (_, cert) => tls.checkServerIdentity(address, cert) }
        : { servername: name }),
      secureContext: this.#context(target.pin?.ca ?? null),
      ALPNProtocols: ['http/1.1'],
      // Said out loud: otherwise NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment would turn verification off (T1).
      rejectUnauthorized: true,
      ...(session === undefined ? {} : { session }),
    });
    socket.setNoDelay(true);
    socket.on('session', (ticket) => this.#keepSession(key, ticket));
    return settled(socket, 'secureConnect', abort);
  }

  #keepSession(key: string, ticket: Buffer): void {
    this.#sessions.delete(key);
    if (this.#sessions.size >= MAX_SESSIONS) {
      const oldest = this.#sessions.keys().next().value;
      if (oldest !== undefined) this.#sessions.delete(oldest);
    }
    this.#sessions.set(key, ticket);
  }

  #sink(target: DialTarget): ReadSink | null {
    if (this.#options.sharedBuffer === undefined || !this.#isDirect(target)) return null;
    // Nobody reads yet: a server that speaks first on an HTTP connection is not one to trust with a request.
    const sink: ReadSink = {
      isEarly: false,
      read: () => {
        sink.isEarly = true;
        return false;
      },
    };
    return sink;
  }

  #onread(sink: ReadSink | null): { onread?: net.OnReadOpts } {
    const buffer = this.#options.sharedBuffer;
    if (sink === null || buffer === undefined) return {};
    return { onread: { buffer, callback: (length) => sink.read(buffer, length) } };
  }

  /** One context per trust set: parsing the root store costs tens of milliseconds. A pinned `ca` is the only trust for its name. */
  #context(caFile: string | null): tls.SecureContext {
    const known = this.#contexts.get(caFile ?? '');
    if (known !== undefined) return known;
    const ca =
      caFile === null
        ? [...tls.rootCertificates, ...(this.#extraCa === null ? [] : [this.#extraCa])]
        : [readFileSync(caFile, 'utf8')];
    const context = tls.createSecureContext({ ca, minVersion: 'TLSv1.2' });
    this.#contexts.set(caFile ?? '', context);
    return context;
  }

  #ownAddresses(): readonly string[] {
    const now = performance.now();
    if (now < this.#ownUntil) return this.#own;
    this.#own = Object.values(networkInterfaces()).flatMap((list) =>
      (list ?? []).map((entry) => entry.address.replace(/%.*$/, '')),
    );
    this.#ownUntil = now + OWN_ADDRESSES_MS;
    return this.#own;
  }
}

/** `address:port`, IPv6 in brackets. */
export function hostPort(address: string, port: number): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}

export function nameOf(destination: Destination): string {
  return destination.kind === 'name' ? destination.name : destination.address;
}

/** Resolves when `event` fires; on failure or deadline the socket is destroyed. */
function settled<S extends net.Socket>(socket: S, event: 'connect' | 'secureConnect', abort: AbortSignal): Promise<S> {
  return new Promise((resolve, reject) => {
    const finish = (error: Error | null) => {
      socket.off(event, onReady).off('error', finish).off('close', onClose);
      abort.removeEventListener('abort', onAbort);
      if (error === null) return resolve(socket);
      socket.on('error', () => {}); // a second error of a socket given up changes nothing
      socket.destroy();
      reject(error);
    };
    const onReady = () => finish(null);
    const onClose = () => finish(new Error('closed before it was ready'));
    const onAbort = () => finish(new Error('deadline passed'));
    socket.once(event, onReady).once('error', finish).once('close', onClose);
    abort.addEventListener('abort', onAbort, { once: true });
    if (abort.aborted) onAbort();
  });
}

function orAborted<T>(work: Promise<T>, abort: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(new Error('deadline passed'));
    abort.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => abort.removeEventListener('abort', onAbort));
  });
}

function proofOf(socket: net.Socket): { tls: string | null; certSha256: string | null } {
  if (!(socket instanceof tls.TLSSocket)) return { tls: null, certSha256: null };
  const fingerprint = socket.getPeerCertificate().fingerprint256;
  return { tls: socket.getProtocol(), certSha256: fingerprint?.replaceAll(':', '').toLowerCase() ?? null };
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** A certificate or protocol that is not right stays wrong on the next address; trying on would only hide it. */
function isTlsFault(error: unknown): boolean {
  return /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|INVALID_)/.test(
    codeOf(error),
  );
}

function dialFailure(error: unknown, target: DialTarget, timedOut: boolean): Refusal {
  const name = nameOf(target.destination);
  if (timedOut) return fault(504, 'upstream_timeout', `${name} did not answer in time.`, 'Try again shortly.');
  if (isTlsFault(error)) {
    return fault(
      502,
      'upstream_tls_failed',
      `${name} did not prove who it is (${codeOf(error)}); nothing was sent.`,
      'The server needs a valid certificate for this name.',
    );
  }
  return fault(
    502,
    'upstream_unreachable',
    `${name} could not be reached (${codeOf(error) || 'connection failed'}).`,
    'Check that the service is up.',
  );
}

function loop(target: DialTarget): Refusal {
  return deny(
    403,
    'never_list',
    `${nameOf(target.destination)} is this gateway itself.`,
    'The gateway never connects to itself.',
  );
}
