/** Groups lines into blocks and writes them in order, retrying for as long as the disk refuses. */
import { GatewayError } from '../errors.ts';
import type { OpenAuditFile } from './files.ts';
import { type Block, LogFiles } from './log-files.ts';
import { sha256Hex } from './record-line.ts';
import type { ChainFields } from './request-text.ts';
import { ascii, type FullRecord, type Stamp } from './stamp.ts';

export interface SpoolOptions {
  readonly open: OpenAuditFile;
  readonly fsync: 'always' | 'interval' | 'never';
  /** The interval sync is due: what else must be as durable as the records. */
  readonly onSync: () => void;
  /** Writing works again after it failed. */
  readonly onRecovered: () => void;
  /** The kernel could not make records durable that were written before: up to so many may be missing after a crash. */
  readonly onSyncLost: (records: number) => void;
}

/** A block is written when it holds this much: large enough that the cost of a write vanishes, small enough to stay in cache. */
export const blockBytes = 128 * 1024;
/** A record waits at most this long for company, and not at all when nothing was written for as long: what `kill -9` may cost. */
export const flushAfterMs = 20;
/** `fsync: interval` */
export const syncEveryMs = 1000;
/** Back-off between attempts of a failed write: doubled from the first to the last. */
export const retryMs = { first: 50, last: 2000 } as const;
/** Attempts that `close` still makes on a disk that refuses. */
export const closeAttempts = 3;

interface Waiter {
  readonly block: Block;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** The only writer of the log files. `append` never waits and never throws. */
export class Spool {
  /** Records appended and not yet written (and synced, with `fsync: always`). */
  records = 0;
  bytes = 0;
  isHealthy = true;
  /** The system's code of the last failure while unhealthy. */
  failure: string | null = null;

  readonly #options: SpoolOptions;
  readonly #pending: Block[] = [];
  #filling: Block | null = null;
  #path: string;
  #position: number;
  readonly #files: LogFiles;
  #spare: Buffer | null = null;
  #isRunning = false;
  #isAbandoned = false;
  #attemptsLeft = Number.POSITIVE_INFINITY;
  #waiters: Waiter[] = [];
  #sealedAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;
  #retry: { timer: NodeJS.Timeout; wake: () => void } | null = null;
  readonly #syncTimer: NodeJS.Timeout | undefined;
  #isSyncDue = false;
  #idle: (() => void)[] = [];

  constructor(options: SpoolOptions, path: string, position: number) {
    this.#options = options;
    this.#files = new LogFiles(options.open, options.fsync);
    this.#path = path;
    this.#position = position;
    if (options.fsync !== 'interval') return;
    this.#syncTimer = setInterval(() => this.#syncSoon(), syncEveryMs);
    this.#syncTimer.unref();
  }

  /** Bytes of the current file, written or queued. */
  get position(): number {
    return this.#position;
  }

  /** Lines appended from now on go to the start of this file. */
  startFile(path: string): void {
    this.#seal();
    this.#path = path;
    this.#position = 0;
  }

  /**
   * Appends `head + "hash":"…", + tail` and a newline, and gives the hash, which is over `head + tail`. Both are printable ASCII.
   * The text is written once, behind a hole as long as the hash member; then only the head moves to the front.
   */
  appendHashed(head: string, tail: string): string {
    const length = head.length + hashMemberChars + tail.length + 1;
    const block = this.#room(length);
    const { bytes, used } = block;
    const textAt = used + hashMemberChars;
    bytes.write(head + tail, textAt, 'latin1');
    const hash = sha256Hex(bytes.subarray(textAt, used + length - 1));
    bytes.copyWithin(used, textAt, textAt + head.length);
    bytes.write(`"hash":"${hash}",`, used + head.length, 'latin1');
    bytes[used + length - 1] = newline;
    this.#added(block, length);
    return hash;
  }

  /** Appends what a stamp makes of a record. Gives the hash, or null with nothing appended when the stamp cannot write it. */
  appendStamped(stamp: Stamp, record: FullRecord, chain: ChainFields): string | null {
    const block = this.#room(stamp.roomFor(record) + hashMemberChars + 1);
    const { bytes, used } = block;
    const textAt = used + hashMemberChars;
    const end = stamp.write(bytes, textAt, record, chain);
    if (end < 0) return null;
    const hash = sha256Hex(bytes.subarray(textAt, end));
    bytes.set(stamp.head, used);
    const hashAt = ascii(bytes, hashOpen, used + stamp.head.length);
    ascii(bytes, hashClose, ascii(bytes, hash, hashAt));
    bytes[end] = newline;
    this.#added(block, end + 1 - used);
    return hash;
  }

  /** Appends a finished line of printable ASCII and a newline. */
  append(line: string): void {
    const block = this.#room(line.length + 1);
    block.bytes.write(line, block.used, 'latin1');
    block.bytes[block.used + line.length] = newline;
    this.#added(block, line.length + 1);
  }

  /** Settles when everything appended so far is written. Rejects when an attempt fails meanwhile; the records stay queued. */
  flush(): Promise<void> {
    this.#seal();
    const block = this.#pending.at(-1);
    if (block === undefined) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#waiters.push({ block, resolve, reject });
      if (!this.isHealthy) this.#wake();
    });
  }

  /** Writes what is queued, syncs and closes the file. Gives false when the disk refused to the end. */
  async close(): Promise<boolean> {
    clearInterval(this.#syncTimer);
    if (!this.#isAbandoned) this.#attemptsLeft = closeAttempts;
    this.#seal();
    this.#wake();
    if (this.#isRunning) await new Promise<void>((resolve) => this.#idle.push(resolve));
    const isWritten = this.#pending.length === 0;
    const isClosed = await this.#files.close().then(
      () => true,
      () => false,
    );
    return isWritten && isClosed;
  }

  /** Writes nothing more: the directory belongs to somebody else now. */
  abandon(): void {
    this.#isAbandoned = true;
    this.#attemptsLeft = 0;
    this.#seal();
    this.#fail(Object.assign(new Error('lock lost'), { code: 'LOCK_LOST' }));
    this.#wake();
  }

  #added(block: Block, length: number): void {
    block.used += length;
    block.records++;
    this.records++;
    this.bytes += length;
    this.#position += length;
    if (block.records === 1) this.#schedule();
    else if (block.used >= blockBytes - lowRoom) this.#seal();
  }

  #room(length: number): Block {
    const block = this.#filling;
    if (block !== null && block.used + length <= block.bytes.length) return block;
    this.#seal();
    const bytes =
      length > blockBytes ? Buffer.allocUnsafeSlow(length) : (this.#spare ?? Buffer.allocUnsafeSlow(blockBytes));
    if (bytes === this.#spare) this.#spare = null;
    this.#filling = { path: this.#path, position: this.#position, bytes, used: 0, records: 0 };
    return this.#filling;
  }

  #schedule(): void {
    if (performance.now() - this.#sealedAt >= flushAfterMs) this.#immediate = setImmediate(() => this.#seal());
    else this.#timer = setTimeout(() => this.#seal(), flushAfterMs);
  }

  #seal(): void {
    const block = this.#filling;
    if (block === null) return;
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
    this.#filling = null;
    this.#sealedAt = performance.now();
    this.#pending.push(block);
    this.#start();
  }

  #syncSoon(): void {
    if (this.#files.unsynced === 0) return;
    this.#isSyncDue = true;
    this.#start();
  }

  #start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    while (this.#attemptsLeft > 0) {
      if (this.#isSyncDue) await this.#sync();
      const block = this.#pending[0];
      if (block === undefined) break;
      if (await this.#writeRetrying(block)) this.#done(block);
    }
    this.#isRunning = false;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  #done(block: Block): void {
    this.#pending.shift();
    this.records -= block.records;
    this.bytes -= block.used;
    if (block.bytes.length === blockBytes) this.#spare = block.bytes;
    const settled = this.#waiters.filter((waiter) => waiter.block === block);
    this.#waiters = this.#waiters.filter((waiter) => waiter.block !== block);
    for (const waiter of settled) waiter.resolve();
    if (this.isHealthy || this.#isAbandoned) return;
    this.isHealthy = true;
    this.failure = null;
    this.#options.onRecovered();
  }

  /** False = given up, because the log is being closed. */
  async #writeRetrying(block: Block): Promise<boolean> {
    for (let delayMs: number = retryMs.first; ; delayMs = Math.min(delayMs * 2, retryMs.last)) {
      if (this.#attemptsLeft <= 0) return false;
      try {
        await this.#files.write(block);
        return true;
      } catch (error) {
        this.#fail(error);
      }
      this.#attemptsLeft--;
      await this.#pause(this.#attemptsLeft === Number.POSITIVE_INFINITY ? delayMs : retryMs.first);
    }
  }

  async #sync(): Promise<void> {
    this.#isSyncDue = false;
    this.#options.onSync();
    try {
      await this.#files.sync();
    } catch (error) {
      // After a failed sync the kernel may have dropped the pages and the next sync would claim success: it must be said.
      const records = this.#files.unsynced;
      this.#files.unsynced = 0;
      this.#fail(error);
      this.#options.onSyncLost(records);
    }
  }

  #fail(error: unknown): void {
    this.isHealthy = false;
    this.failure = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    const cause = error instanceof Error ? error : new Error('write failed');
    const failed = new GatewayError('GATEWAY_AUDIT_FAILED', `Cannot write audit log: ${this.failure}`, { cause });
    for (const waiter of this.#waiters.splice(0)) waiter.reject(failed);
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, delayMs);
      this.#retry = { timer, wake: resolve };
    });
  }

  #wake(): void {
    if (this.#retry === null) return;
    clearTimeout(this.#retry.timer);
    this.#retry.wake();
    this.#retry = null;
  }
}

const newline = 10;
const hashOpen = '"hash":"';
const hashClose = '",';
const hashMemberChars = hashOpen.length + 64 + hashClose.length;

/** A block with less room than a common record is sealed at once instead of waiting for the next one to find it full. */
const lowRoom = 1024;
