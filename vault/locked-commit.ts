/** One change of the sealed file: lock, look, write, unlock. */
import { durableWrite } from './durable-write.ts';
import { VaultError } from './errors.ts';
import { exists } from './stored-file.ts';
import { acquireWriteLock } from './write-lock.ts';

export interface Commit {
  readonly mustBeNew: boolean;
  /** The new bytes of the file, undefined = leave it as it is; runs under the lock. */
  readonly change: () => Buffer | undefined;
}

/** @throws VaultError `VAULT_FILE_EXISTS`, `VAULT_WRITE_FAILED`, and what `change` throws */
export async function lockedCommit(path: string, { mustBeNew, change }: Commit): Promise<void> {
  const lock = await acquireWriteLock(`${path}.lock`);
  try {
    if (mustBeNew && exists(path)) {
      throw new VaultError('VAULT_FILE_EXISTS', `Cannot create the sealed file ${path}: it is there already`);
    }
    const bytes = change();
    if (bytes !== undefined) await durableWrite(path, bytes, { mayCommit: lock.isHeld });
  } catch (cause) {
    if (cause instanceof VaultError) throw cause;
    throw new VaultError('VAULT_WRITE_FAILED', `Cannot write the sealed file ${path}: the write did not end well`, {
      cause,
    });
  } finally {
    lock.release();
  }
}
