/** The highest sequence number that may have been given out: what bounds the loss after a crash. */
import { closeSync, constants, fdatasync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { auditNames } from './files.ts';

/**
 * Sequence numbers are granted in blocks. The end of a block is in the file before its first number may be reserved, so after
 * `kill -9` at most `value - last seq on disk` records are missing. After a loss of power this holds as far as the file was synced.
 */
export class HighWater {
  value: number;
  readonly #descriptor: number;
  #isOpen = true;

  constructor(dir: string) {
    const path = join(dir, auditNames.highWater);
    this.value = readHighWater(path) ?? 0;
    this.#descriptor = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
  }

  /** One write at position 0 of a fixed width: a killed process leaves the old or the new number. Throws what the system says. */
  set(value: number): void {
    writeSync(this.#descriptor, `${String(value).padStart(width, '0')}\n`, 0, 'latin1');
    this.value = value;
  }

  /** Durable as well as the records are; failing is told by the log's own sync, which meets the same disk. */
  sync(): void {
    if (this.#isOpen) fdatasync(this.#descriptor, () => undefined);
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    closeSync(this.#descriptor);
  }
}

const width = 15;

/** Null: no file, or one that was cut off. */
function readHighWater(path: string): number | null {
  try {
    const match = /^(\d{15})\n$/.exec(readFileSync(path, 'latin1'));
    return match === null ? null : Number(match[1]);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
