/** RFC 3339 time with microseconds, UTC, cheap enough for every record. */

/** Gives the `time` of a record. `now` is Unix time in milliseconds and may have a fraction. */
export class AuditClock {
  readonly #now: () => number;
  #ms = -1;
  #prefix = '';

  constructor(now: () => number = preciseNow) {
    this.#now = now;
  }

  /** `2026-01-02T03:04:05.123456Z`; the text of a millisecond is made once. */
  text(now: number = this.#now()): string {
    const ms = Math.floor(now);
    if (ms !== this.#ms) {
      this.#ms = ms;
      this.#prefix = new Date(ms).toISOString().slice(0, -1);
    }
    return this.#prefix + (micros[Math.floor((now - ms) * 1000)] ?? '000Z');
  }
}

const micros = Array.from({ length: 1000 }, (_, i) => `${String(i).padStart(3, '0')}Z`);

/** Further than this from the wall clock, the anchor is renewed: the clock was set, or drifted. */
const maxDriftMs = 2;
/** The wall clock is asked this often; in between, the monotonic one has not drifted from it. */
const checkEveryMs = 1;
let anchor = Date.now() - performance.now();
let checkedAt = Number.NEGATIVE_INFINITY;

/** Wall clock with a sub-millisecond part: the monotonic clock, re-anchored whenever the two disagree. */
export function preciseNow(): number {
  const monotonic = performance.now();
  if (monotonic - checkedAt < checkEveryMs) return anchor + monotonic;
  checkedAt = monotonic;
  const wall = Date.now();
  if (Math.abs(anchor + monotonic - wall) > maxDriftMs) anchor = wall - monotonic;
  return anchor + monotonic;
}
