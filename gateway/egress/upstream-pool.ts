/** Idle upstream connections, newest first. A key holds who asks, where to and under which policy generation, so nothing is shared across them. */

import type { Dialled } from './dialer.ts';
import type { EgressLimits } from './limits.ts';
import type { WireMode, WireReader } from './wire.ts';
import { Wire } from './wire.ts';

/** The reader of a connection that nobody uses: a byte or an end makes it useless. */
export interface UpstreamOwner {
  onUpstreamBytes(buf: Buffer, length: number): boolean;
  onUpstreamEnd(): void;
  onUpstreamDrain(): void;
  onUpstreamClose(error: Error | null): void;
}

export class Upstream implements WireReader {
  readonly wire: Wire;
  readonly lane: Lane;
  readonly dialled: Dialled;
  readonly record: {
    readonly address: string;
    readonly tls: string | null;
    readonly certSha256: string | null;
    readonly connectMs: number;
  };
  readonly createdAt: number;
  /** Requests sent so far. */
  uses = 0;
  idleSince = 0;
  owner: UpstreamOwner | null = null;
  isClosed = false;
  readonly #pool: UpstreamPool;

  constructor(pool: UpstreamPool, lane: Lane, dialled: Dialled, mode: WireMode) {
    this.#pool = pool;
    this.lane = lane;
    this.dialled = dialled;
    const { address, tls, certSha256, connectMs } = dialled;
    this.record = { address, tls, certSha256, connectMs };
    this.createdAt = performance.now();
    this.wire = new Wire(dialled.socket, this, mode, dialled.sink);
  }

  onBytes(buf: Buffer, length: number): boolean {
    if (this.owner !== null) return this.owner.onUpstreamBytes(buf, length);
    this.destroy();
    return false;
  }

  onEnd(): void {
    if (this.owner !== null) this.owner.onUpstreamEnd();
    else this.destroy();
  }

  onDrain(): void {
    this.owner?.onUpstreamDrain();
  }

  onClose(error: Error | null): void {
    this.isClosed = true;
    this.#pool.forget(this);
    const owner = this.owner;
    this.owner = null;
    owner?.onUpstreamClose(error);
  }

  destroy(): void {
    this.isClosed = true;
    this.#pool.forget(this);
    this.wire.destroy();
  }
}

/** The idle connections of one key, newest last. A connection in use is in no list. */
export interface Lane {
  readonly key: string;
  readonly idle: Upstream[];
  /** The pool knows the lane; one that was swept away is taken up again with its next idle connection. */
  isListed: boolean;
}

export class UpstreamPool {
  readonly #limits: EgressLimits;
  readonly #now: () => number;
  readonly #lanes = new Map<string, Lane>();
  #idleCount = 0;
  readonly all = new Set<Upstream>();

  /** `now` is a monotonic clock in milliseconds; ages are seconds, so a coarse one will do. */
  constructor(limits: EgressLimits, now: () => number) {
    this.#limits = limits;
    this.#now = now;
  }

  /** The lane of a key. A connection that asks for the same again and again keeps it, and spares the look-up. */
  lane(key: string): Lane {
    return this.#lanes.get(key) ?? { key, idle: [], isListed: false };
  }

  add(lane: Lane, dialled: Dialled, mode: WireMode): Upstream {
    const upstream = new Upstream(this, lane, dialled, mode);
    this.all.add(upstream);
    return upstream;
  }

  /** The newest idle connection of the lane that is young enough, or null. */
  take(lane: Lane): Upstream | null {
    for (let upstream = lane.idle.pop(); upstream !== undefined; upstream = lane.idle.pop()) {
      this.#idleCount--;
      if (!upstream.isClosed && this.#now() - upstream.createdAt < this.#limits.upstreamAgeMs) return upstream;
      upstream.destroy();
    }
    return null;
  }

  /** Gives a connection back. Over a bound it is closed instead. */
  put(upstream: Upstream): void {
    upstream.owner = null;
    const { lane } = upstream;
    const isFull =
      lane.idle.length >= this.#limits.upstreamIdlePerKey || this.#idleCount >= this.#limits.upstreamIdleTotal;
    if (upstream.isClosed || isFull || !this.#list(lane)) {
      upstream.destroy();
      return;
    }
    upstream.idleSince = this.#now();
    lane.idle.push(upstream);
    this.#idleCount++;
    // A connection may have been left paused by its last user; an idle one must see its end.
    upstream.wire.resume();
  }

  forget(upstream: Upstream): void {
    if (!this.all.delete(upstream)) return;
    const { idle } = upstream.lane;
    const index = idle.indexOf(upstream);
    if (index < 0) return;
    idle.splice(index, 1);
    this.#idleCount--;
  }

  /** Closes idle connections that are too old, or whose key `isDead` (a policy generation that is gone). */
  sweep(now: number, isDead: (key: string) => boolean = () => false): void {
    for (const [key, lane] of [...this.#lanes]) {
      for (const upstream of [...lane.idle]) {
        if (now - upstream.idleSince > this.#limits.upstreamIdleMs || isDead(key)) upstream.destroy();
      }
      if (lane.idle.length > 0) continue;
      this.#lanes.delete(key);
      lane.isListed = false;
    }
  }

  /** Closes everything, in use or not. */
  close(): void {
    for (const upstream of [...this.all]) upstream.destroy();
  }

  /** False when another lane took the key meanwhile: two lists of one key would not be bounded together. */
  #list(lane: Lane): boolean {
    if (lane.isListed) return true;
    if (this.#lanes.has(lane.key)) return false;
    this.#lanes.set(lane.key, lane);
    lane.isListed = true;
    return true;
  }
}
