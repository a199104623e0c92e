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
  readonly key: string;
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

  constructor(pool: UpstreamPool, key: string, dialled: Dialled, mode: WireMode) {
    this.#pool = pool;
    this.key = key;
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

export class UpstreamPool {
  readonly #limits: EgressLimits;
  readonly #idle = new Map<string, Upstream[]>();
  #idleCount = 0;
  readonly all = new Set<Upstream>();

  constructor(limits: EgressLimits) {
    this.#limits = limits;
  }

  add(key: string, dialled: Dialled, mode: WireMode): Upstream {
    const upstream = new Upstream(this, key, dialled, mode);
    this.all.add(upstream);
    return upstream;
  }

  /** The newest idle connection of the key that is young enough, or null. */
  take(key: string): Upstream | null {
    const list = this.#idle.get(key);
    for (let upstream = list?.pop(); upstream !== undefined; upstream = list?.pop()) {
      this.#idleCount--;
      if (!upstream.isClosed && performance.now() - upstream.createdAt < this.#limits.upstreamAgeMs) return upstream;
      upstream.destroy();
    }
    return null;
  }

  /** Gives a connection back. Over a bound it is closed instead. */
  put(upstream: Upstream): void {
    upstream.owner = null;
    const list = this.#idle.get(upstream.key) ?? [];
    if (
      upstream.isClosed ||
      list.length >= this.#limits.upstreamIdlePerKey ||
      this.#idleCount >= this.#limits.upstreamIdleTotal
    ) {
      upstream.destroy();
      return;
    }
    upstream.idleSince = performance.now();
    if (list.length === 0) this.#idle.set(upstream.key, list);
    list.push(upstream);
    this.#idleCount++;
    // A connection may have been left paused by its last user; an idle one must see its end.
    upstream.wire.resume();
  }

  forget(upstream: Upstream): void {
    if (!this.all.delete(upstream)) return;
    const list = this.#idle.get(upstream.key);
    const index = list?.indexOf(upstream) ?? -1;
    if (list === undefined || index < 0) return;
    list.splice(index, 1);
    this.#idleCount--;
    if (list.length === 0) this.#idle.delete(upstream.key);
  }

  /** Closes idle connections that are too old, or whose key `isDead` (a policy generation that is gone). */
  sweep(now: number, isDead: (key: string) => boolean = () => false): void {
    for (const [key, list] of [...this.#idle]) {
      for (const upstream of [...list]) {
        if (now - upstream.idleSince > this.#limits.upstreamIdleMs || isDead(key)) upstream.destroy();
      }
      if (list.length === 0) this.#idle.delete(key);
    }
  }

  /** Closes everything, in use or not. */
  close(): void {
    for (const upstream of [...this.all]) upstream.destroy();
  }
}
