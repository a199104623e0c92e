/** One thing `doctor` looks at. */

/**
 * `ok`: there; `missing`: not there and wanted; `off`: there or not, this version or this machine does without.
 */
export type CheckState = 'ok' | 'missing' | 'off';

export interface Check {
  readonly name: string;
  readonly state: CheckState;
  /** The gateway does not run without it. */
  readonly required: boolean;
  /** What was found. */
  readonly why: string;
  /** How to get it; null when there is nothing to do. */
  readonly how: string | null;
}

/** Shorthands, so that a check reads as one sentence. */
export function ok(name: string, why: string): Check {
  return { name, state: 'ok', required: false, why, how: null };
}

export function missing(name: string, why: string, how: string): Check {
  return { name, state: 'missing', required: true, why, how };
}

export function off(name: string, why: string, how: string | null = null): Check {
  return { name, state: 'off', required: false, why, how };
}
