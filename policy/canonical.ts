/** The two outcomes of bringing something untrusted into its one canonical form. */
import type { Canonical, CanonicalFailure } from './types.ts';

/** A success. */
export function canonical<T>(value: T): Canonical<T> {
  return { ok: true, value };
}

/** A failure, answered 400 unless `status` says otherwise. `reason` never repeats what was sent. */
export function failure(code: string, reason: string, status = 400): CanonicalFailure {
  return { ok: false, code, status, reason };
}
