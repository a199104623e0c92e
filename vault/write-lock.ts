/** One writer at a time over processes: a lock file that names its holder, so that a dead one's lock is recognised. */
import { randomBytes } from 'node:crypto';
import {
  linkSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { VaultError } from './errors.ts';

export interface WriteLock {
  /** Still ours? Asked right before a commit. */
  isHeld(): boolean;
  /** May be called twice. */
  release(): void;
}

/** A write takes milliseconds: who waits longer waits for something that is stuck. */
export const LOCK_WAIT_MS = 5_000;
const POLL_MS = 15;
/** A holder in another process namespace cannot be looked up; its lock counts as dead after this long. */
const FOREIGN_STALE_MS = 60_000;

/** @throws VaultError `VAULT_WRITE_FAILED` when the lock stays taken or cannot be made */
export async function acquireWriteLock(path: string, waitMs: number = LOCK_WAIT_MS): Promise<WriteLock> {
  const holder = ownHolder();
  const deadline = Date.now() + waitMs;
  for (;;) {
    if (tryCreate(path, holder)) {
      removeLeftovers(path);
      return lockOf(path, holder.token);
    }
    removeIfStale(path);
    if (Date.now() >= deadline) {
      throw new VaultError('VAULT_WRITE_FAILED', `Cannot lock ${path}: another writer has held it for ${waitMs} ms`);
    }
    await delay(POLL_MS);
  }
}

interface Holder {
  readonly token: string;
  readonly pid: number;
  /** Start of the process in clock ticks: a pid is reused, the pair is not. Empty where /proc is missing. */
  readonly startTicks: string;
  readonly pidNamespace: string;
}

function lockOf(path: string, token: string): WriteLock {
  const isHeld = () => read(path)?.holder?.token === token;
  return {
    isHeld,
    release() {
      if (isHeld()) unlinkIfThere(path);
    },
  };
}

/** Appears with its content or not at all: a holder killed between the two would leave a lock that names nobody. */
function tryCreate(path: string, holder: Holder): boolean {
  const prepared = `${path}.${holder.token}`;
  try {
    writeFileSync(prepared, JSON.stringify(holder), { flag: 'wx', mode: 0o600 });
    linkSync(prepared, path);
    return true;
  } catch (cause) {
    // EEXIST is the lock; ENOENT: another writer took the prepared file for a leftover. Both mean: try again.
    if (codeOf(cause) === 'EEXIST' || codeOf(cause) === 'ENOENT') return false;
    throw new VaultError('VAULT_WRITE_FAILED', `Cannot lock ${path}: the lock file cannot be made`, { cause });
  } finally {
    unlinkIfThere(prepared);
  }
}

/** What writers killed in the middle of locking left; the age spares those that are locking now. */
function removeLeftovers(path: string): void {
  const prefix = `${basename(path)}.`;
  for (const name of readdirSync(dirname(path))) {
    const leftover = join(dirname(path), name);
    if (name.startsWith(prefix) && (read(leftover)?.ageMs ?? 0) > FOREIGN_STALE_MS) unlinkIfThere(leftover);
  }
}

/**
 * Moves a stale lock aside before it is removed. Two finders of one stale lock could otherwise remove the fresh lock that
 * the faster of them made; whoever moved the wrong one puts it back.
 */
function removeIfStale(path: string): void {
  const found = read(path);
  if (found === undefined || !isStale(found)) return;
  const aside = `${path}.${randomBytes(8).toString('hex')}`;
  try {
    renameSync(path, aside);
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return;
    throw new VaultError('VAULT_WRITE_FAILED', `Cannot lock ${path}: a dead lock cannot be removed`, { cause });
  }
  if (read(aside)?.text !== found.text) putBack(aside, path);
  unlinkIfThere(aside);
}

function putBack(aside: string, path: string): void {
  try {
    linkSync(aside, path);
  } catch {
    // Taken again meanwhile: the displaced holder sees in isHeld() that it lost the lock and does not commit.
  }
}

interface Found {
  readonly text: string;
  readonly ageMs: number;
  readonly holder: Holder | undefined;
}

function read(path: string): Found | undefined {
  try {
    const text = readFileSync(path, 'utf8');
    return { text, ageMs: Date.now() - statSync(path).mtimeMs, holder: parseHolder(text) };
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return undefined;
    throw new VaultError('VAULT_WRITE_FAILED', `Cannot lock ${path}: the lock file cannot be read`, { cause });
  }
}

/** undefined = not written by us: only its age can tell. */
function parseHolder(text: string): Holder | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isHolder(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isHolder(value: unknown): value is Holder {
  if (typeof value !== 'object' || value === null) return false;
  const has = (key: string, type: string) => typeof Reflect.get(value, key) === type;
  return has('token', 'string') && has('pid', 'number') && has('startTicks', 'string') && has('pidNamespace', 'string');
}

function isStale(found: Found): boolean {
  const { holder, ageMs } = found;
  if (holder === undefined || holder.pidNamespace !== pidNamespace()) return ageMs > FOREIGN_STALE_MS;
  if (!isAlive(holder.pid)) return true;
  const { state, startTicks } = processState(holder.pid);
  // A zombie holds nothing any more; where nobody reaps it, it would hold the lock for ever.
  if (state === 'Z') return true;
  return startTicks !== '' && holder.startTicks !== '' && startTicks !== holder.startTicks;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== 'ESRCH';
  }
}

function ownHolder(): Holder {
  const token = randomBytes(16).toString('hex');
  const { startTicks } = processState(process.pid);
  return { token, pid: process.pid, startTicks, pidNamespace: pidNamespace() };
}

/** Fields 3 and 22 of /proc/PID/stat; the command before them may hold spaces and brackets, so counting starts after its last bracket. */
function processState(pid: number): { state: string; startTicks: string } {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', startTicks: fields[19] ?? '' };
  } catch {
    // No /proc (macOS), or the process just ended: the pid alone decides.
    return { state: '', startTicks: '' };
  }
}

function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    // No namespaces on this system: every holder is in the only one.
    return '';
  }
}

function unlinkIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return;
    throw new VaultError('VAULT_WRITE_FAILED', `Cannot unlock ${path}: the lock file cannot be removed`, { cause });
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
