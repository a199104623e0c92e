/** Where records of requests wait for their text and hash: a batch is made in warm caches, at half the cost of one by one. */
import type { Chain } from './chain.ts';
import { preciseNow } from './clock.ts';
import type { RequestRecord, SettledRecord } from './types.ts';

/** Records made in one go. */
export const intakeBatch = 256;
/** A record waits at most this long, and not at all when the one before is older; then the spool may hold it as long again. */
export const intakeMs = 10;

export class Intake {
  readonly #chain: Chain;
  readonly #now: () => number;
  /** A record was not what its type says. */
  readonly #onBad: () => void;
  #records: (RequestRecord | SettledRecord)[] = [];
  #times: number[] = [];
  #drainedAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;

  constructor(chain: Chain, onBad: () => void, now: () => number = preciseNow) {
    this.#chain = chain;
    this.#onBad = onBad;
    this.#now = now;
  }

  /** Records waiting. */
  get length(): number {
    return this.#records.length;
  }

  /** Takes a record; its time is now, its number the next. */
  push(record: RequestRecord | SettledRecord): void {
    const now = this.#now();
    this.#records.push(record);
    this.#times.push(now);
    if (this.#records.length >= intakeBatch) this.drain();
    else if (this.#records.length === 1) this.#schedule(now);
  }

  /** Puts everything that waits into the chain. Whoever adds another kind of record does this first: the order is the order of asking. */
  drain(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
    const records = this.#records;
    const times = this.#times;
    if (records.length === 0) return;
    this.#records = [];
    this.#times = [];
    this.#drainedAt = times.at(-1) ?? 0;
    for (let i = 0; i < records.length; i++) {
      const record = records[i];
      if (record !== undefined) this.#add(record, times[i] ?? 0);
    }
  }

  #add(record: RequestRecord | SettledRecord, time: number): void {
    try {
      this.#chain.request('toRecord' in record ? record.toRecord() : record, time);
    } catch {
      // One bad record must take neither the request path nor the others of its batch down: it is counted and told.
      this.#onBad();
    }
  }

  #schedule(now: number): void {
    if (Math.abs(now - this.#drainedAt) >= intakeMs) this.#immediate = setImmediate(() => this.drain());
    else this.#timer = setTimeout(() => this.drain(), intakeMs);
  }
}
