/** Who may connect: identity is how a connection arrived (its proxy credential or its own socket), never what it says about itself. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { CompiledPolicy } from '../../policy/index.ts';
import { GatewayError } from '../errors.ts';
import type { PinnedUpstream } from '../types.ts';

/** One immutable compiled policy; requests are judged under the newest of their slot. */
export interface PolicyGeneration {
  readonly compiled: CompiledPolicy;
  /** The same object for every record, so that the audit writer can keep its text. */
  readonly info: { readonly name: string; readonly digest: string; readonly generation: number };
}

/** A policy by name; `current` is replaced as a whole on reload. Null (missing) denies everything. */
export interface PolicySlot {
  readonly name: string;
  current: PolicyGeneration | null;
}

/** One sandbox as the egress path sees it. */
export interface Caller {
  readonly id: string;
  readonly info: { readonly id: string; readonly labels: Readonly<Record<string, string>> };
  readonly policy: PolicySlot;
  /** SHA-256 of the proxy password; null = it has no credential. */
  readonly tokenHash: Buffer | null;
  /** Further pinned destinations of this caller alone: the self-test's server. */
  readonly pins: ReadonlyMap<string, PinnedUpstream>;
  /** Served even while the gateway refuses all others: the self-test. */
  readonly isSelfTest: boolean;
  connections: number;
  /** In the table of callers; a detached one is nobody. */
  isAttached: boolean;
  /** Stand-ins by credential name; as many as its policies ever had credentials. */
  readonly standIns: Map<string, string>;
}

/** A caller with nothing under way. `token` null = it has no proxy credential. */
export function createCaller(options: {
  readonly id: string;
  readonly policy: PolicySlot;
  readonly labels?: Readonly<Record<string, string>>;
  readonly token: string | null;
  readonly pins?: ReadonlyMap<string, PinnedUpstream>;
  readonly isSelfTest?: boolean;
}): Caller {
  const { id, policy, labels = {}, token, pins = new Map(), isSelfTest = false } = options;
  return {
    id,
    info: { id, labels },
    policy,
    tokenHash: token === null ? null : hashToken(token),
    pins,
    isSelfTest,
    connections: 0,
    isAttached: false,
    standIns: new Map(),
  };
}

/** Sandboxes one gateway holds; a laptop has a few, a node a few hundred. */
const MAX_CALLERS = 10_000;

/** The self-test's caller, which nobody else may be: it comes and goes with each run. */
export const SELFTEST_CALLER = 'sallyport-selftest';

const CALLER_ID = /^[a-zA-Z0-9._-]{1,64}$/;

/** Longest Proxy-Authorization value looked at: id and token, base64. */
const MAX_AUTHORIZATION = 1024;

/** Compared against when no such caller exists, so that an unknown id costs what a known one costs. */
const NOBODY = Buffer.alloc(32);

export class Callers {
  readonly #byId = new Map<string, Caller>();

  /** @throws GatewayError `GATEWAY_CALLER_INVALID` for a malformed or taken id, or when the table is full. */
  add(caller: Caller): void {
    if (!CALLER_ID.test(caller.id)) throw invalid(`Cannot add caller: its id must match ${CALLER_ID.source}`);
    if ((caller.id === SELFTEST_CALLER) !== caller.isSelfTest)
      throw invalid(`Cannot add caller ${caller.id}: the id is the self-test's`);
    if (this.#byId.has(caller.id)) throw invalid(`Cannot add caller ${caller.id}: the id is taken`);
    if (this.#byId.size >= MAX_CALLERS && !caller.isSelfTest)
      throw invalid(`Cannot add caller ${caller.id}: ${MAX_CALLERS} exist already`);
    this.#byId.set(caller.id, caller);
    caller.isAttached = true;
  }

  remove(id: string): Caller | undefined {
    const caller = this.#byId.get(id);
    this.#byId.delete(id);
    if (caller !== undefined) caller.isAttached = false;
    return caller;
  }

  get(id: string): Caller | undefined {
    return this.#byId.get(id);
  }

  get size(): number {
    return this.#byId.size;
  }

  all(): IterableIterator<Caller> {
    return this.#byId.values();
  }

  /** The caller of a Proxy-Authorization value (`Basic base64(id:token)`, RFC 7617), or null. */
  authenticate(value: string): Caller | null {
    if (value.length > MAX_AUTHORIZATION) return null;
    const encoded = /^basic +([a-z0-9+/]+={0,2})$/i.exec(value)?.[1];
    if (encoded === undefined) return null;
    const [id = '', ...rest] = Buffer.from(encoded, 'base64').toString('latin1').split(':');
    const caller = this.#byId.get(id);
    const matches = timingSafeEqual(hashToken(rest.join(':')), caller?.tokenHash ?? NOBODY);
    return matches && caller?.tokenHash ? caller : null;
  }
}

/** How a proxy password is kept: a fast hash is enough, since tokens are random and long. */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token, 'latin1').digest();
}

function invalid(message: string): GatewayError {
  return new GatewayError('GATEWAY_CALLER_INVALID', message);
}
