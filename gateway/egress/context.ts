/** What every connection of one gateway shares. Built once by the server; holds no secret itself. */

import type { CredentialSource, InterceptionCa, Placeholders, Redactor } from '../../vault/index.ts';
import type { AuditSink } from '../audit/types.ts';
import type { PinnedUpstream } from '../types.ts';
import type { Caller, Callers } from './callers.ts';
import type { Dialer } from './dialer.ts';
import type { EgressLimits } from './limits.ts';
import type { EgressStats } from './stats.ts';
import type { UpstreamPool } from './upstream-pool.ts';
import type { WireMode } from './wire.ts';

export interface EgressContext {
  readonly limits: EgressLimits;
  readonly callers: Callers;
  readonly audit: AuditSink;
  readonly credentials: CredentialSource;
  readonly placeholders: Placeholders;
  readonly redactor: Redactor;
  readonly ca: InterceptionCa;
  readonly dialer: Dialer;
  readonly pool: UpstreamPool;
  readonly pins: ReadonlyMap<string, PinnedUpstream>;
  readonly stats: EgressStats;
  readonly wireMode: WireMode;
  readonly newId: () => string;
  /** Why all traffic is refused (a failed self-test), or null. */
  refusing(): string | null;
  /** The gateway is stopping: no further request on any connection. */
  isStopping(): boolean;
  /** A monotonic clock in milliseconds, as fine as the sweep: for time-outs only. */
  coarseNow(): number;
  /** Everything with a deadline; the sweep asks each. */
  readonly timed: Set<Timed>;
  /** Connections of a caller, to cut them when it is detached or its policy revokes them. */
  readonly sessions: Set<Revocable>;
  /** A fault of our own: counted and logged by code, never with bytes of a request. */
  onFault(where: string, error: unknown): void;
}

export interface Timed {
  /** `performance.now()` value after which `onDeadline` is called. */
  deadline: number;
  onDeadline(): void;
}

export interface Revocable {
  readonly caller: Caller | null;
  /** Ends what the newest policy no longer allows. */
  revoke(): void;
  /** Ends when nothing is under way; otherwise after the request under way. */
  stop(): void;
  destroy(): void;
}
