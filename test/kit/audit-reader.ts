/** Reads the audit log of a running gateway as a consumer would: from its files, line by line. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { defaultDeadlineMs } from './upstream.ts';

/** The fields of a stored record that tests look at; every other is there too. */
export interface AuditLine {
  readonly seq: number;
  readonly id: string;
  readonly kind: string;
  readonly verdict?: string;
  readonly rule?: string | null;
  readonly code?: string;
  readonly reason?: string;
  readonly raw?: string | null;
  readonly sandbox?: { readonly id: string } | null;
  readonly policy?: { readonly name: string; readonly generation: number } | null;
  readonly conn?: {
    readonly via: string;
    readonly src: string;
    readonly sni: string | null;
    readonly tls: string | null;
  };
  readonly request?: {
    readonly method: string;
    readonly scheme: string;
    readonly host: string;
    readonly port: number;
    readonly path: string;
    readonly query: string | null;
    readonly bytes: number;
  } | null;
  readonly upstream?: { readonly address: string } | null;
  readonly response?: { readonly status: number; readonly bytes: number } | null;
  readonly credential?: { readonly name: string; readonly slots: readonly string[] } | null;
  readonly redactions?: number;
  readonly detail?: Readonly<Record<string, unknown>>;
  /** The line as stored. */
  readonly text: string;
}

/** Between two looks at the files: the writer groups records for up to 20 ms. */
const lookEveryMs = 5;

export class AuditReader {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Every complete record on disk now, in order. */
  async all(): Promise<AuditLine[]> {
    const lines: AuditLine[] = [];
    for (const name of await this.#files()) {
      const text = await readFile(join(this.#dir, name), 'utf8');
      // Behind the last newline stands what is being written.
      for (const line of text.split('\n').slice(0, -1)) lines.push(parseLine(line));
    }
    return lines;
  }

  /** Seq of the newest record on disk; hand it to {@link find} as `after`. */
  async mark(): Promise<number> {
    return (await this.all()).at(-1)?.seq ?? 0;
  }

  /** The first record that `matches`, waiting for it to be written. */
  async find(matches: (line: AuditLine) => boolean, after = 0): Promise<AuditLine> {
    const deadline = performance.now() + defaultDeadlineMs;
    for (;;) {
      const lines = (await this.all()).filter((line) => line.seq > after);
      const found = lines.find(matches);
      if (found !== undefined) return found;
      if (performance.now() > deadline) {
        throw new Error(
          `no such record within ${defaultDeadlineMs} ms; have ${lines.map((one) => one.text).join('\n')}`,
        );
      }
      await pause(lookEveryMs);
    }
  }

  async #files(): Promise<string[]> {
    const names = await readdir(this.#dir).catch(() => []);
    return names.filter((name) => name.endsWith('.jsonl')).sort();
  }
}

function parseLine(text: string): AuditLine {
  // The log is ours and `audit verify` has tests of its own; a wrong shape shows as a failed assertion.
  return { ...(JSON.parse(text) as Omit<AuditLine, 'text'>), text };
}
