/** Puts blocks into the log files: whole, at their position, as durable as configured. */
import { dirname } from 'node:path';
import { type AuditFile, type OpenAuditFile, syncDirectory } from './files.ts';

/** Lines that are written together. */
export interface Block {
  readonly path: string;
  /** Of the first byte in the file. */
  readonly position: number;
  readonly bytes: Buffer;
  used: number;
  records: number;
}

/** Keeps one file open. Only one call may run at a time. */
export class LogFiles {
  /** Records written but not yet known to be durable. */
  unsynced = 0;
  readonly #open: OpenAuditFile;
  readonly #fsync: 'always' | 'interval' | 'never';
  #file: AuditFile | null = null;
  #path = '';

  constructor(open: OpenAuditFile, fsync: 'always' | 'interval' | 'never') {
    this.#open = open;
    this.#fsync = fsync;
  }

  /** Throws what the system says. A retry starts over at the same position: the same bytes land on the same place. */
  async write(block: Block): Promise<void> {
    const file = await this.#fileOf(block.path);
    let done = 0;
    while (done < block.used) {
      const written = await file.write(block.bytes, done, block.used - done, block.position + done);
      if (written <= 0) throw Object.assign(new Error('nothing written'), { code: 'ENOSPC' });
      done += written;
    }
    if (this.#fsync === 'always') await file.sync();
    else this.unsynced += block.records;
  }

  async sync(): Promise<void> {
    const records = this.unsynced;
    await this.#file?.sync();
    this.unsynced -= records;
  }

  async close(): Promise<void> {
    const file = this.#file;
    if (file === null) return;
    if (this.#fsync !== 'never') await file.sync();
    this.unsynced = 0;
    this.#file = null;
    await file.close();
  }

  async #fileOf(path: string): Promise<AuditFile> {
    if (this.#file !== null && this.#path === path) return this.#file;
    await this.close();
    const file = await this.#open(path);
    this.#file = file;
    this.#path = path;
    if (this.#fsync !== 'never') await syncDirectory(dirname(path));
    return file;
  }
}
