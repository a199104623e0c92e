/** Follows a log from outside the process that writes it. */
import { watch } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { firstSeqOf, listAuditFiles, maxLineBytes } from './files.ts';
import { readRecordLine, type StoredRecord } from './record-line.ts';

export interface TailOptions {
  readonly dir: string;
  /** Goes on with new records until the signal; otherwise ends with the last complete line. */
  readonly follow: boolean;
  /** Records shown from before; at most {@link maxTailLines}. */
  readonly lines: number;
  readonly filter?: (record: StoredRecord) => boolean;
  readonly signal?: AbortSignal;
}

/** More than a person reads; `query` is for more. Bounds the memory of the first look. */
export const maxTailLines = 10_000;
/** Where the system does not tell of changes (network file systems, exhausted watches), the file is looked at this often. */
export const pollEveryMs = 250;
const chunkBytes = 256 * 1024;

/**
 * Yields the last records and, with `follow`, each new one, also across rotation. Lines that are not records are skipped: showing
 * is not verifying. At most one chunk is read ahead of the consumer.
 */
export async function* tailAudit(options: TailOptions): AsyncGenerator<StoredRecord, void, undefined> {
  const { dir, follow, filter = () => true, signal } = options;
  const files = (await listAuditFiles(dir)).map((file) => file.path);
  const wanted = Math.min(Math.max(0, options.lines), maxTailLines);
  const start = await findStart(files, wanted, filter);
  for (const record of start.records) {
    if (signal?.aborted) return;
    yield record;
  }
  if (!follow) return;
  const changes = new Changes(dir, signal);
  const reader = new Reader(start.path, start.position);
  try {
    while (!signal?.aborted) {
      changes.arm();
      const next = await reader.next(dir);
      if (next === null) await changes.wait();
      for (const record of next ?? []) {
        if (signal?.aborted) return;
        if (filter(record)) yield record;
      }
    }
  } finally {
    changes.close();
    await reader.close();
  }
}

interface Start {
  readonly records: readonly StoredRecord[];
  /** Where following begins; null = there is no file yet. */
  readonly path: string | null;
  readonly position: number;
}

/** Walks back from the newest file until enough records passed the filter. */
async function findStart(
  files: readonly string[],
  wanted: number,
  filter: (record: StoredRecord) => boolean,
): Promise<Start> {
  const newestFirst: StoredRecord[] = [];
  let start: { path: string; position: number } | null = null;
  for (const path of files.toReversed()) {
    const handle = await open(path, 'r');
    try {
      const end = await readBackward(handle, (line) => {
        const read = readRecordLine(line);
        if (read.ok && newestFirst.length < wanted && filter(read.record)) newestFirst.push(read.record);
        return newestFirst.length < wanted;
      });
      start ??= { path, position: end };
    } finally {
      await handle.close();
    }
    if (newestFirst.length >= wanted) break;
  }
  return { records: newestFirst.reverse(), path: start?.path ?? null, position: start?.position ?? 0 };
}

/** Calls `take` with each complete line from the end until it gives false. Gives the position behind the last complete line. */
async function readBackward(handle: FileHandle, take: (line: Buffer) => boolean): Promise<number> {
  const { size } = await handle.stat();
  let from = size;
  let held: Buffer = Buffer.alloc(0);
  let end: number | null = null;
  while (from > 0 && held.length <= maxLineBytes) {
    const length = Math.min(chunkBytes, from);
    from -= length;
    const chunk = Buffer.alloc(length);
    const { bytesRead } = await handle.read(chunk, 0, length, from);
    held = Buffer.concat([chunk.subarray(0, bytesRead), held]);
    if (end === null) {
      const last = held.lastIndexOf(10);
      if (last < 0) continue;
      end = from + last + 1;
      held = held.subarray(0, last + 1);
    }
    for (let at = held.lastIndexOf(10, -2); held.length > 0 && (at >= 0 || from === 0); at = held.lastIndexOf(10, -2)) {
      if (!take(held.subarray(at + 1, -1))) return end;
      held = held.subarray(0, at + 1);
      if (held.length < 2) break;
    }
  }
  return end ?? 0;
}

/** Reads forward, one chunk at a time, and steps to the next file when the present one is done. */
class Reader {
  #path: string | null;
  #position: number;
  #handle: FileHandle | null = null;
  readonly #chunk = Buffer.alloc(maxLineBytes + chunkBytes);

  constructor(path: string | null, position: number) {
    this.#path = path;
    this.#position = position;
  }

  /** The records of the next chunk; null = nothing new. */
  async next(dir: string): Promise<StoredRecord[] | null> {
    // Listed before reading: a file that has a successor by now gets no more lines after the read below.
    const after = await this.#successor(dir);
    if (this.#path !== null) {
      this.#handle ??= await open(this.#path, 'r');
      const records = await this.#read(this.#handle);
      if (records !== null) return records;
    }
    if (after === null) return null;
    await this.close();
    this.#path = after;
    this.#position = 0;
    return [];
  }

  async close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = null;
    await handle?.close();
  }

  async #read(handle: FileHandle): Promise<StoredRecord[] | null> {
    const { bytesRead } = await handle.read(this.#chunk, 0, this.#chunk.length, this.#position);
    const records: StoredRecord[] = [];
    let from = 0;
    for (let at = this.#chunk.indexOf(10); at >= 0 && at < bytesRead; at = this.#chunk.indexOf(10, from)) {
      const read = readRecordLine(this.#chunk.subarray(from, at));
      if (read.ok) records.push(read.record);
      from = at + 1;
    }
    this.#position += from;
    return from === 0 ? null : records;
  }

  async #successor(dir: string): Promise<string | null> {
    const current = this.#path;
    const own = current === null ? 0 : (firstSeqOf(current.slice(current.lastIndexOf('/') + 1)) ?? 0);
    return (await listAuditFiles(dir)).find((file) => file.firstSeq > own)?.path ?? null;
  }
}

/** Tells that something changed since `arm`. */
class Changes {
  readonly #signal: AbortSignal | undefined;
  readonly #watcher: { close(): void } | null;
  #isChanged = false;
  #wake: (() => void) | null = null;

  constructor(dir: string, signal: AbortSignal | undefined) {
    this.#signal = signal;
    this.#watcher = startWatch(dir, () => {
      this.#isChanged = true;
      this.#wake?.();
    });
  }

  arm(): void {
    this.#isChanged = false;
  }

  /** Settles at a change, at the poll interval, or when the signal aborts. */
  wait(): Promise<void> {
    if (this.#isChanged || this.#signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#signal?.removeEventListener('abort', done);
        this.#wake = null;
        resolve();
      };
      const timer = setTimeout(done, pollEveryMs);
      this.#signal?.addEventListener('abort', done, { once: true });
      this.#wake = done;
    });
  }

  close(): void {
    this.#watcher?.close();
    this.#wake?.();
  }
}

/** Null where watching is not possible; polling alone still follows. */
function startWatch(dir: string, onChange: () => void): { close(): void } | null {
  try {
    const watcher = watch(dir, { persistent: false }, onChange);
    watcher.on('error', () => watcher.close());
    return watcher;
  } catch {
    return null;
  }
}
