/** What the tests of vault/ share: a folder of their own, a key file, reproducible randomness. */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import type { KeySource } from '../../vault/index.ts';
import { VaultError } from '../../vault/index.ts';

/** scrypt at the least cost that a header may ask for. */
export const cheapScrypt = { log2N: 14, r: 8, p: 1 };

/** 2026-01-02T03:04:05Z */
export const fixedNow = Date.UTC(2026, 0, 2, 3, 4, 5);

export function temporaryFolder(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'vault-test-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A key file of 32 equal bytes. */
export function keyFile(folder: string, byte = 7): KeySource & { kind: 'file' } {
  const path = join(folder, `key-${byte}`);
  writeFileSync(path, `${Buffer.alloc(32, byte).toString('base64')}\n`, { mode: 0o600 });
  return { kind: 'file', path };
}

/** The same bytes in each run, never the same twice in one. */
export function countingRandom(): (sizeBytes: number) => Buffer {
  let count = 0;
  return (sizeBytes) => {
    count += 1;
    return createHash('sha512').update(`random ${count}`).digest().subarray(0, sizeBytes);
  };
}

/** The code of what `work` throws, null when it does not. Anything but a VaultError fails the test. */
export async function codeOf(work: () => unknown): Promise<string | null> {
  try {
    await work();
    return null;
  } catch (error) {
    if (error instanceof VaultError) return error.code;
    throw error;
  }
}
