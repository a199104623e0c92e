/** Names of the files in an audit directory, and the seam through which the log writes. */
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Names beside the numbered files. */
export const auditNames = { lock: 'audit.lock', highWater: 'audit.high', publicKey: 'audit.pub' } as const;

/** `prev` of the very first record. */
export const genesisHash = '0'.repeat(64);

/** No line of ours is longer: the sum of all text limits, each character as `\uXXXX`, stays below. */
export const maxLineBytes = 256 * 1024;

/** `audit-000000000001.jsonl`: sorts by the first seq it holds. */
export function auditFileName(firstSeq: number): string {
  return `audit-${String(firstSeq).padStart(12, '0')}.jsonl`;
}

/** The first seq that a file name promises, or null for other names. */
export function firstSeqOf(name: string): number | null {
  const match = /^audit-(\d{12,15})\.jsonl$/.exec(name);
  return match === null ? null : Number(match[1]);
}

/** The numbered files of a directory in order of their first seq; a missing directory has none. */
export async function listAuditFiles(dir: string): Promise<{ path: string; firstSeq: number }[]> {
  const files: { path: string; firstSeq: number }[] = [];
  for (const name of await readdir(dir).catch(noneIfMissing)) {
    const firstSeq = firstSeqOf(name);
    if (firstSeq !== null) files.push({ path: join(dir, name), firstSeq });
  }
  return files.sort((a, b) => a.firstSeq - b.firstSeq);
}

/** An open log file. Writes name their position, so a retried write lands on the same bytes. */
export interface AuditFile {
  /** Gives the number of bytes written, which may be fewer. */
  write(bytes: Buffer, offset: number, length: number, position: number): Promise<number>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** Opens (creating with 0600) a log file for writing. Tests hand in one that fails. */
export type OpenAuditFile = (path: string) => Promise<AuditFile>;

/** The real files. */
export const openAuditFile: OpenAuditFile = async (path) => {
  const handle = await open(path, 'r+').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return open(path, 'wx', 0o600);
    throw error;
  });
  return {
    write: async (bytes, offset, length, position) =>
      (await handle.write(bytes, offset, length, position)).bytesWritten,
    sync: () => handle.datasync(),
    close: () => handle.close(),
  };
};

/** Makes a created or renamed name durable. Some file systems refuse to sync a directory: the data itself is synced apart. */
export async function syncDirectory(dir: string): Promise<void> {
  const handle = await open(dir, 'r');
  try {
    await handle.sync().catch(() => undefined);
  } finally {
    await handle.close();
  }
}

function noneIfMissing(error: NodeJS.ErrnoException): string[] {
  if (error.code === 'ENOENT') return [];
  throw error;
}
