/** Opens the secrets of credentials and keeps their header lines ready for the data path. */
import type { CompiledCredential } from '../policy/types.ts';
import { VaultError } from './errors.ts';
import { prepareCredential } from './prepared-credential.ts';
import type { ResolvedSecret, SecretResolver } from './references.ts';
import type { CredentialSource, PreparedCredential, Redactor } from './types.ts';

export interface CredentialSourceOptions {
  readonly resolver: SecretResolver;
  /** Learns every value before the data path may use it. */
  readonly redactor: Redactor;
  /** How long a prepared credential is used before its source is asked again; default {@link DEFAULT_TTL_MS}. */
  readonly ttlMs?: number;
  /** How long a failure is repeated without asking again; default {@link DEFAULT_FAILURE_TTL_MS}. */
  readonly failureTtlMs?: number;
  /** How long one reading may take; default {@link DEFAULT_RESOLVE_TIMEOUT_MS}. */
  readonly resolveTimeoutMs?: number;
  /** Milliseconds; default `Date.now`. */
  readonly now?: () => number;
}

export interface ManagedCredentialSource extends CredentialSource {
  /** Forgets everything prepared, e.g. after `vault set`; readings under way are not kept either. */
  invalidate(): void;
  /** Like invalidate, and refuses from now on. Lines already handed out stay whole: a request may be sending one. */
  close(): void;
}

/** A rotated secret is in use after this long at most. */
export const DEFAULT_TTL_MS = 10_000;
/** A missing secret must not turn each request into a read; a repaired one is noticed soon. */
export const DEFAULT_FAILURE_TTL_MS = 2_000;
/** A local file that takes longer is on a file system that hangs. */
export const DEFAULT_RESOLVE_TIMEOUT_MS = 5_000;

/** Entries live by identity of the compiled credential: they go with the policy generation that holds it. */
export function createCredentialSource(options: CredentialSourceOptions): ManagedCredentialSource {
  const { now = Date.now, ttlMs = DEFAULT_TTL_MS, failureTtlMs = DEFAULT_FAILURE_TTL_MS } = options;
  const { resolveTimeoutMs = DEFAULT_RESOLVE_TIMEOUT_MS } = options;
  let entries = new WeakMap<CompiledCredential, Entry>();
  let flights = new Map<CompiledCredential, Promise<PreparedCredential>>();
  let isClosed = false;

  async function read(credential: CompiledCredential, kept: WeakMap<CompiledCredential, Entry>) {
    try {
      const secret = await withDeadline(options.resolver.resolve(credential.spec.secret), resolveTimeoutMs, credential);
      const prepared = open(credential, secret, options.redactor);
      kept.set(credential, { prepared, failure: undefined, untilMs: now() + ttlMs });
      return prepared;
    } catch (cause) {
      const failure = asVaultError(cause, credential);
      kept.set(credential, { prepared: undefined, failure, untilMs: now() + failureTtlMs });
      throw failure;
    }
  }

  function forget(): void {
    // New maps: a reading that ends later writes into the old ones, which nobody looks at any more.
    entries = new WeakMap();
    flights = new Map();
  }

  return {
    ready(credential) {
      const entry = entries.get(credential);
      return entry !== undefined && entry.untilMs > now() ? entry.prepared : undefined;
    },

    async prepare(credential) {
      if (isClosed) throw new VaultError('VAULT_CLOSED', 'Cannot open a credential: the source is closed');
      const entry = entries.get(credential);
      if (entry !== undefined && entry.untilMs > now()) {
        if (entry.prepared !== undefined) return entry.prepared;
        if (entry.failure !== undefined) throw entry.failure;
      }
      const flying = flights.get(credential);
      if (flying !== undefined) return flying;
      const current = flights;
      const flight = read(credential, entries).finally(() => current.delete(credential));
      current.set(credential, flight);
      return flight;
    },

    invalidate: forget,

    close() {
      isClosed = true;
      forget();
    },
  };
}

interface Entry {
  readonly prepared: PreparedCredential | undefined;
  readonly failure: VaultError | undefined;
  readonly untilMs: number;
}

function open(credential: CompiledCredential, secret: ResolvedSecret, redactor: Redactor): PreparedCredential {
  try {
    const prepared = prepareCredential(credential, secret);
    // Before anyone can send it, nobody may log it; a redactor that is full refuses, and so does this.
    redactor.add(credential.spec.name, secret.value);
    for (const echo of prepared.echoes) if (!echo.includes(secret.value)) redactor.add(credential.spec.name, echo);
    return prepared;
  } finally {
    secret.value.fill(0);
  }
}

async function withDeadline<T>(work: Promise<T>, timeoutMs: number, credential: CompiledCredential): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const state = `no answer from its source within ${timeoutMs} ms`;
      reject(new VaultError('VAULT_SOURCE_UNAVAILABLE', `Cannot open credential ${credential.spec.name}: ${state}`));
    }, timeoutMs);
    timer.unref();
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/** Only errors of this folder are known to hold no value. */
function asVaultError(cause: unknown, credential: CompiledCredential): VaultError {
  if (cause instanceof VaultError) return cause;
  const message = `Cannot open credential ${credential.spec.name}: its source failed`;
  return new VaultError('VAULT_SOURCE_UNAVAILABLE', message, { cause });
}
