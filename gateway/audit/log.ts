/** The writer of the audit log: one chain of hashes, appended by one process. */
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayError } from '../errors.ts';
import type { AuditConfig } from '../types.ts';
import { Chain } from './chain.ts';
import { auditNames, type OpenAuditFile, openAuditFile } from './files.ts';
import { HighWater } from './high-water.ts';
import { Intake } from './intake.ts';
import { DirectoryLock } from './lock.ts';
import { type ChainEnd, isClosing, recoverEnd } from './recover.ts';
import type { AuditSigner } from './signer.ts';
import { Spool } from './spool.ts';
import type { AuditSink, EventRecord, RequestRecord, SettledRecord } from './types.ts';

export interface AuditLogOptions {
  readonly dir: string;
  /** Name of this writer in every record. */
  readonly node: string;
  readonly signer: AuditSigner;
  readonly config: Omit<AuditConfig, 'dir'>;
  /** Unix time in milliseconds, with a fraction. */
  readonly now?: () => number;
  /** Takes known secrets out of a text; applied to every string that came from outside. */
  readonly redact?: (text: string) => string;
  /** Opens a log file; tests hand in one that fails. */
  readonly openFile?: OpenAuditFile;
}

export interface AuditStatus {
  /** Of the last record given out. */
  readonly seq: number;
  /** Hash of the last record: what `verify` may be told to expect. */
  readonly hash: string;
  /** Reserved, or filled and not yet written. */
  readonly queued: number;
  readonly healthy: boolean;
  /** The system's code while unhealthy. */
  readonly failure: string | null;
  readonly file: string | null;
  /** Records that were lost although the process lives; each loss is also an `audit.gap`. */
  readonly droppedSinceStart: number;
}

/** Sequence numbers granted by one write of the high-water file: 4 ns a record, and the most a crash is said to have lost. */
export const seqBlock = 256;
/** Events may exceed `maxQueued` by this many before they are dropped and counted. */
export const eventHeadroom = 256;
/** Records are bounded in number by the configuration and in memory by this. */
export const maxQueuedBytes = 64 * 1024 * 1024;

/** Implements {@link AuditSink}. One instance owns its directory until `close()`. */
export class AuditLog implements AuditSink {
  readonly #options: AuditLogOptions;
  readonly #lock: DirectoryLock;
  readonly #highWater: HighWater;
  readonly #spool: Spool;
  readonly #chain: Chain;
  readonly #intake: Intake;
  readonly #checkpointTimer: NodeJS.Timeout;
  readonly #maxQueued: number;
  #reserved = 0;
  #dropped = 0;
  #droppedTold = 0;
  #isOpen = true;
  #isLockLost = false;
  #closing: Promise<void> | null = null;

  /**
   * Opens or creates the log: takes the directory's lock, finds the end of the chain, puts a torn tail aside and records an
   * `audit.gap` when the last writer did not close.
   * @throws GatewayError `GATEWAY_AUDIT_LOCKED` while another process writes there, `GATEWAY_AUDIT_FAILED` when the directory or its last file is unusable
   */
  static async open(options: AuditLogOptions): Promise<AuditLog> {
    const { dir, signer } = options;
    let lock: DirectoryLock | null = null;
    let highWater: HighWater | null = null;
    try {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      await chmod(dir, 0o700);
      lock = new DirectoryLock(dir);
      await keepPublicKey(dir, signer.publicKeyPem);
      const end = await recoverEnd(dir);
      highWater = new HighWater(dir);
      const log = new AuditLog(options, lock, highWater, end);
      await log.#recordRecovery(end);
      return log;
    } catch (cause) {
      highWater?.close();
      lock?.release();
      if (cause instanceof GatewayError) throw cause;
      const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unexpected';
      throw new GatewayError('GATEWAY_AUDIT_FAILED', `Cannot open audit log in ${dir}: ${code}`, { cause });
    }
  }

  /** Use {@link AuditLog.open}. */
  private constructor(options: AuditLogOptions, lock: DirectoryLock, highWater: HighWater, end: ChainEnd) {
    this.#options = options;
    this.#lock = lock;
    this.#highWater = highWater;
    this.#maxQueued = options.config.maxQueued;
    const { fsync, checkpointEveryMs } = options.config;
    this.#spool = new Spool(
      {
        open: options.openFile ?? openAuditFile,
        fsync,
        onSync: () => this.#highWater.sync(),
        onRecovered: () => this.#tellDropped(),
        onSyncLost: (records) => this.#gap('sync failed', { atMost: records }),
      },
      end.file ?? '',
      end.sizeBytes,
    );
    const { dir, node, signer, now, redact } = options;
    // Without any file the numbers go on behind the high-water mark, so that none is ever given out twice.
    const start = { seq: end.last?.seq ?? highWater.value, hash: end.lastHash, file: end.file };
    this.#chain = new Chain(
      { dir, node, signer, now, redact, rotateBytes: options.config.rotateBytes },
      this.#spool,
      start,
    );
    const onBad = (): void => {
      this.#dropped++;
      this.#tellDropped();
    };
    this.#intake = new Intake(this.#chain, onBad, now);
    this.#checkpointTimer = setInterval(() => this.#tick(), checkpointEveryMs);
    this.#checkpointTimer.unref();
  }

  reserve(): boolean {
    if (!this.#isOpen || !this.#spool.isHealthy) return false;
    const seq = this.#seq + this.#reserved;
    if (
      this.#reserved + this.#intake.length + this.#spool.records >= this.#maxQueued ||
      this.#spool.bytes >= maxQueuedBytes
    )
      return false;
    if (seq >= this.#highWater.value && !this.#grant(seq)) return false;
    this.#reserved++;
    return true;
  }

  release(): void {
    if (this.#reserved > 0) this.#reserved--;
  }

  missed(): void {
    this.#dropped++;
  }

  request(record: RequestRecord | SettledRecord): void {
    this.release();
    if (this.#isShut()) this.#dropped++;
    else this.#intake.push(record);
  }

  event(record: EventRecord): void {
    if (this.#isShut() || this.#spool.records >= this.#maxQueued + eventHeadroom) this.#dropped++;
    else this.#addEvent(record);
  }

  /**
   * Settles when every record so far is written, with `fsync: always` also durable.
   * @throws GatewayError `GATEWAY_AUDIT_FAILED` when the disk refuses; the records stay queued and are tried again
   */
  flush(): Promise<void> {
    this.#intake.drain();
    return this.#spool.flush();
  }

  /**
   * Writes a closing checkpoint and everything queued, and gives the directory free.
   * @throws GatewayError `GATEWAY_AUDIT_FAILED` when the disk refused to the end; the next opening records the gap
   */
  close(): Promise<void> {
    this.#isOpen = false;
    this.#closing ??= this.#close();
    return this.#closing;
  }

  status(): AuditStatus {
    this.#intake.drain();
    const { isHealthy, failure, records } = this.#spool;
    return {
      seq: this.#chain.seq,
      hash: this.#chain.hash,
      queued: this.#reserved + records,
      healthy: this.#isOpen && isHealthy,
      failure: this.#isLockLost ? 'lock lost' : failure,
      file: this.#chain.file,
      droppedSinceStart: this.#dropped,
    };
  }

  #addEvent(record: EventRecord): void {
    this.#grantOne();
    this.#intake.drain();
    this.#chain.event(record);
  }

  #checkpoint(closing: boolean): void {
    this.#tellDropped();
    this.#grantOne();
    this.#intake.drain();
    this.#chain.checkpoint(closing);
  }

  #tick(): void {
    this.#checkLock();
    this.#intake.drain();
    if (this.#spool.isHealthy && this.#isOpen && this.#chain.isUnsigned) this.#checkpoint(false);
  }

  /** For a record without a reservation; it is written even if the mark cannot be. */
  #grantOne(): void {
    const seq = this.#seq + this.#reserved;
    if (seq >= this.#highWater.value) this.#grant(seq);
  }

  #grant(seq: number): boolean {
    if (!this.#checkLock()) return false;
    try {
      this.#highWater.set(seq + seqBlock);
      if (this.#options.config.fsync === 'always') this.#highWater.sync();
      return true;
    } catch {
      // The disk refuses: so must the gateway. The next reservation tries again.
      return false;
    }
  }

  #checkLock(): boolean {
    if (this.#isLockLost || this.#lock.isHeld()) return !this.#isLockLost;
    this.#isLockLost = true;
    this.#isOpen = false;
    this.#spool.abandon();
    return false;
  }

  /** Of the last record given in. */
  get #seq(): number {
    return this.#chain.seq + this.#intake.length;
  }

  #isShut(): boolean {
    return this.#isLockLost || this.#closing !== null;
  }

  #tellDropped(): void {
    const dropped = this.#dropped - this.#droppedTold;
    if (dropped === 0) return;
    this.#droppedTold = this.#dropped;
    this.#gap('records dropped', { dropped });
  }

  #gap(reason: string, detail: Readonly<Record<string, unknown>>): void {
    this.#addEvent({ kind: 'audit.gap', reason, detail });
  }

  async #recordRecovery(end: ChainEnd): Promise<void> {
    const lastSeq = end.last?.seq ?? 0;
    const highWater = this.#highWater.value;
    const isClean = end.torn.length === 0 && !this.#lock.wasStale && highWater === lastSeq && isClosing(end);
    if (isClean) return;
    this.#gap('unclean shutdown', {
      // Below the last record the mark itself was lost with the power: then nothing bounds the loss.
      atMost: highWater >= lastSeq ? highWater - lastSeq : null,
      lastSeq,
      rebooted: this.#lock.rebooted,
      torn: end.torn,
    });
    this.#checkpoint(false);
    await this.#spool.flush();
  }

  async #close(): Promise<void> {
    clearInterval(this.#checkpointTimer);
    this.#intake.drain();
    if (!this.#isLockLost && this.#chain.isUsed) this.#checkpoint(true);
    const isWritten = await this.#spool.close();
    if (isWritten && this.#checkLock()) this.#highWater.set(this.#chain.seq);
    this.#highWater.close();
    this.#lock.release();
    if (!isWritten)
      throw new GatewayError('GATEWAY_AUDIT_FAILED', `Cannot close audit log: ${this.#spool.failure ?? 'sync failed'}`);
  }
}

/** The public key stands beside the log; keys of earlier writers stay, so that their checkpoints still verify. */
async function keepPublicKey(dir: string, publicKeyPem: string): Promise<void> {
  const path = join(dir, auditNames.publicKey);
  const known = await readFile(path, 'latin1').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  if (!known.includes(publicKeyPem.trim()))
    await writeFile(path, `${publicKeyPem.trim()}\n`, { flag: 'a', mode: 0o600 });
}
