/** Replaces a file so that after a crash at any moment it is whole: the old one or the new one. */
import { randomBytes } from 'node:crypto';
import { open, readdir, rename, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

const TEMPORARY = '.tmp-';

export interface DurableWriteOptions {
  /** Asked right before the rename; false gives up and leaves the file as it was. */
  readonly mayCommit: () => boolean;
}

/** Writes beside the file, mode 0600, syncs, renames, syncs the directory. Leftovers of a crash are removed: call it under the lock. */
export async function durableWrite(path: string, bytes: Buffer, options: DurableWriteOptions): Promise<void> {
  await removeLeftovers(path);
  const temporary = path + TEMPORARY + randomBytes(8).toString('hex');
  try {
    await writeSynced(temporary, bytes);
    if (!options.mayCommit()) throw new Error('the lock was lost');
    await rename(temporary, path);
  } catch (error) {
    // The write has failed already; a temporary file that stays is removed by the next one.
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  await syncDirectory(dirname(path));
}

async function writeSynced(path: string, bytes: Buffer): Promise<void> {
  const handle = await open(path, 'wx', 0o600);
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function removeLeftovers(path: string): Promise<void> {
  const prefix = basename(path) + TEMPORARY;
  for (const name of await readdir(dirname(path))) {
    if (name.startsWith(prefix)) await unlink(join(dirname(path), name));
  }
}
