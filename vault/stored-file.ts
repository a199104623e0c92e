/** Reading the sealed file from disk: bytes with the identity they had. */
import { closeSync, constants, fstatSync, mkdirSync, openSync, readSync, realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { VaultError } from './errors.ts';
import { corrupt, MAX_FILE_BYTES } from './sealed-file.ts';

/** The whole file, of at most {@link MAX_FILE_BYTES}. @throws VaultError `VAULT_FILE_MISSING`, `VAULT_FILE_CORRUPT`, `VAULT_SOURCE_UNAVAILABLE` */
export function readStoredFile(path: string): { bytes: Buffer; stamp: string } {
  // One open handle for the identity and the bytes, so that they belong together.
  let handle: number | undefined;
  try {
    handle = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(handle, { bigint: true });
    if (!stat.isFile() || stat.size > MAX_FILE_BYTES) throw corrupt('it is not a plain file of a possible size');
    const bytes = Buffer.alloc(Number(stat.size));
    let length = 0;
    while (length < bytes.length) {
      const count = readSync(handle, bytes, length, bytes.length - length, length);
      if (count === 0) break;
      length += count;
    }
    return { bytes: bytes.subarray(0, length), stamp: formatStamp(stat) };
  } catch (cause) {
    throw unreadable(path, cause);
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}

/** Changes whenever the file at this path is replaced or written. */
export function stampOf(path: string): string {
  try {
    return formatStamp(statSync(path, { bigint: true }));
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

interface FileIdentity {
  readonly dev: bigint;
  readonly ino: bigint;
  readonly size: bigint;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
}

function formatStamp(stat: FileIdentity): string {
  return `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
}

/** A link is followed once, so that a write replaces the file and not the link. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

export function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** The directory of a new sealed file, mode 0700, with its parents. @throws VaultError `VAULT_WRITE_FAILED` */
export function makeDirectory(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new VaultError('VAULT_WRITE_FAILED', `Cannot create the sealed file ${path}: no directory`, { cause });
  }
}

function unreadable(path: string, cause: unknown): VaultError {
  if (cause instanceof VaultError) return cause;
  const isMissing = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
  if (isMissing)
    return new VaultError('VAULT_FILE_MISSING', `Cannot open the sealed file ${path}: it is missing`, { cause });
  return new VaultError('VAULT_SOURCE_UNAVAILABLE', `Cannot open the sealed file ${path}: it cannot be read`, {
    cause,
  });
}
