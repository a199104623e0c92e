/** One writer a directory: two would fork the chain. */
import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, renameSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GatewayError } from '../errors.ts';
import { auditNames } from './files.ts';

/** Who holds, or held, the lock. Start time and boot id tell a process from a later one with the same pid. */
interface Holder {
  readonly pid: number;
  /** Clock ticks after boot (/proc/PID/stat field 22); null where there is no /proc. */
  readonly started: string | null;
  readonly bootId: string | null;
}

/** The lock of a directory, held until `release`. */
export class DirectoryLock {
  /** A dead holder was found: the log before was not closed. */
  readonly wasStale: boolean;
  /** The dead holder ran before the last boot: more than its memory may be lost. */
  readonly rebooted: boolean;
  readonly #path: string;
  readonly #inode: number;

  /** @throws GatewayError `GATEWAY_AUDIT_LOCKED` when a living process holds it */
  constructor(dir: string) {
    this.#path = join(dir, auditNames.lock);
    const stale = clearStale(this.#path);
    this.wasStale = stale !== null;
    this.rebooted = stale !== null && stale.bootId !== bootId();
    this.#inode = create(this.#path);
  }

  /**
   * Whether the lock file is still ours. A process in another pid namespace that shares the directory may have taken us for dead;
   * the one that lost the file must stop writing.
   */
  isHeld(): boolean {
    try {
      return statSync(this.#path).ino === this.#inode;
    } catch {
      // Gone, or not to be looked at: either way it cannot be relied on.
      return false;
    }
  }

  /** Removes the lock file if it is ours; later calls do nothing. */
  release(): void {
    if (this.isHeld()) unlinkSync(this.#path);
  }
}

/** Moves a dead holder's lock away. Null when there was none. */
function clearStale(path: string): Holder | null {
  const found = readLock(path);
  if (found === null) return null;
  if (isAlive(found.holder)) throw locked(found.holder.pid);
  const aside = `${path}.${randomBytes(6).toString('hex')}`;
  renameSync(path, aside);
  // Another process may have replaced the stale lock between our read and our rename: give a living one its name back.
  const moved = readLock(aside);
  if (moved !== null && moved.text !== found.text && isAlive(moved.holder)) {
    linkSync(aside, path);
    unlinkSync(aside);
    throw locked(moved.holder.pid);
  }
  unlinkSync(aside);
  return found.holder;
}

/** Written apart and linked, so that the lock never exists without its content. Gives its inode. */
function create(path: string): number {
  const holder: Holder = { pid: process.pid, started: startedAt(process.pid), bootId: bootId() };
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  writeFileSync(draft, `${JSON.stringify(holder)}\n`, { mode: 0o600, flag: 'wx' });
  try {
    linkSync(draft, path);
    return statSync(path).ino;
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'EEXIST')) throw cause;
    // Only a race: somebody else took it after we looked.
    throw new GatewayError('GATEWAY_AUDIT_LOCKED', 'Cannot lock audit directory: another writer was faster', { cause });
  } finally {
    unlinkSync(draft);
  }
}

function readLock(path: string): { text: string; holder: Holder } | null {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
  return { text, holder: parseHolder(text) };
}

/** A lock without readable content was cut off while being written: nobody living is known to hold it. */
function parseHolder(text: string): Holder {
  try {
    const value: unknown = JSON.parse(text.slice(0, 1024));
    if (typeof value === 'object' && value !== null && 'pid' in value && Number.isSafeInteger(value.pid)) {
      const started = 'started' in value && typeof value.started === 'string' ? value.started : null;
      const boot = 'bootId' in value && typeof value.bootId === 'string' ? value.bootId : null;
      return { pid: Number(value.pid), started, bootId: boot };
    }
  } catch {
    // Not JSON: falls through to the unknown holder.
  }
  return { pid: 0, started: null, bootId: null };
}

function isAlive(holder: Holder): boolean {
  if (holder.pid <= 0 || holder.bootId !== bootId()) return false;
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    // EPERM: it lives, under another user.
    if (!(error instanceof Error && 'code' in error && error.code === 'EPERM')) return false;
  }
  return holder.started === startedAt(holder.pid);
}

function startedAt(pid: number): string | null {
  const stat = readText(`/proc/${pid}/stat`);
  // The name in parentheses may hold spaces and parentheses: count from its end. Field 22 is the 20th after it.
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
}

function bootId(): string | null {
  return readText('/proc/sys/kernel/random/boot_id')?.trim() ?? null;
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // No /proc on this system, or the process is gone: both mean unknown.
    return null;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

function locked(pid: number): GatewayError {
  return new GatewayError('GATEWAY_AUDIT_LOCKED', `Cannot lock audit directory: process ${pid} is writing there`);
}
