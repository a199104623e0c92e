/** Finds the end of an existing log and puts a torn tail aside. */
import { createHash } from 'node:crypto';
import { type FileHandle, open, rename, unlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { GatewayError } from '../errors.ts';
import { genesisHash, listAuditFiles } from './files.ts';
import { readRecordLine, type StoredRecord } from './record-line.ts';

/** Where the chain goes on. */
export interface ChainEnd {
  /** The file to append to; null = start a new one. */
  readonly file: string | null;
  readonly sizeBytes: number;
  /** Null when there is no record at all. */
  readonly last: StoredRecord | null;
  readonly lastHash: string;
  /** What stood behind the last good record and was moved to files of its own: one, or two when a new file was begun in vain. */
  readonly torn: readonly TornTail[];
}

export interface TornTail {
  readonly bytes: number;
  /** Newlines among them. */
  readonly lines: number;
  readonly sha256: string;
  /** Name of the file that keeps the original bytes. */
  readonly file: string;
}

/**
 * Reads the newest file from its end to the last good record. What follows it was being written when the process or the machine
 * died; it is kept beside the log, cut off, and reported.
 * @throws GatewayError `GATEWAY_AUDIT_FAILED` when no good record is found within {@link maxTornBytes}: that is no torn tail
 */
export async function recoverEnd(dir: string): Promise<ChainEnd> {
  const files = await listAuditFiles(dir);
  const torn: TornTail[] = [];
  for (let newest = files.pop(); newest !== undefined; newest = files.pop()) {
    const end = await findEnd(newest.path);
    if (end.sizeBytes > end.goodBytes) torn.push(await putAside(dir, newest.path, end.goodBytes));
    if (end.last !== null) {
      return { file: newest.path, sizeBytes: end.goodBytes, last: end.last, lastHash: end.last.hash, torn };
    }
    // Nothing good in it: it was created right before the crash, and the chain ends in the file before.
    await unlink(newest.path);
  }
  return { file: null, sizeBytes: 0, last: null, lastHash: genesisHash, torn };
}

/** More than an unsynced second of writing leaves; a larger broken tail needs a person to look. */
export const maxTornBytes = 64 * 1024 * 1024;

const firstLookBytes = 512 * 1024;

interface FileEnd {
  readonly last: StoredRecord | null;
  readonly goodBytes: number;
  readonly sizeBytes: number;
}

async function findEnd(path: string): Promise<FileEnd> {
  const handle = await open(path, 'r');
  try {
    const { size } = await handle.stat();
    for (let look = firstLookBytes; ; look *= 4) {
      const from = Math.max(0, size - Math.min(look, maxTornBytes));
      const found = lastGood(await readRange(handle, from, size - from), from);
      if (found !== null) return { ...found, sizeBytes: size };
      if (from === 0) return { last: null, goodBytes: 0, sizeBytes: size };
      if (look >= maxTornBytes) {
        throw new GatewayError(
          'GATEWAY_AUDIT_FAILED',
          `Cannot open audit log: no intact record near the end of ${basename(path)}`,
        );
      }
    }
  } finally {
    await handle.close();
  }
}

function lastGood(bytes: Buffer, from: number): { last: StoredRecord; goodBytes: number } | null {
  let end = bytes.lastIndexOf(10);
  while (end >= 0) {
    const before = end === 0 ? -1 : bytes.lastIndexOf(10, end - 1);
    // The first piece of the window may be half a line: it counts only when the window starts at the file's start.
    if (before < 0 && from > 0) return null;
    const read = readRecordLine(bytes.subarray(before + 1, end));
    if (read.ok) return { last: read.record, goodBytes: from + end + 1 };
    end = before;
  }
  return null;
}

async function readRange(handle: FileHandle, from: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await handle.read(bytes, done, length - done, from + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return bytes.subarray(0, done);
}

async function putAside(dir: string, path: string, goodBytes: number): Promise<TornTail> {
  const handle = await open(path, 'r+');
  try {
    const { size } = await handle.stat();
    const bytes = await readRange(handle, goodBytes, size - goodBytes);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const file = `audit-torn-${sha256.slice(0, 16)}.bin`;
    await writeFile(join(dir, `${file}.part`), bytes, { mode: 0o600, flush: true });
    await rename(join(dir, `${file}.part`), join(dir, file));
    await handle.truncate(goodBytes);
    await handle.sync();
    return { bytes: bytes.length, lines: countNewlines(bytes), sha256, file };
  } finally {
    await handle.close();
  }
}

function countNewlines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) count++;
  return count;
}

/** The last record is the checkpoint of an orderly close, or there is none. */
export function isClosing({ last }: ChainEnd): boolean {
  if (last === null) return true;
  const detail = last.detail;
  return (
    last.kind === 'audit.checkpoint' &&
    typeof detail === 'object' &&
    detail !== null &&
    'closing' in detail &&
    detail.closing === true
  );
}
