/** What every command gets: where to read and write, and how it ends. */
import type { Writable } from 'node:stream';

/** 0 good, 1 findings or refused, 2 could not run; `run` passes on the code of its command. */
export type ExitCode = number;

export const GOOD = 0;
export const FINDINGS = 1;
export const COULD_NOT_RUN = 2;

export interface CliStreams {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The state of one invocation. */
export class Cli {
  readonly stdin: CliStreams['stdin'];
  readonly env: CliStreams['env'];
  exitCode: ExitCode = GOOD;
  readonly #stdout: CliStreams['stdout'];
  readonly #stderr: CliStreams['stderr'];

  constructor(streams: CliStreams) {
    this.stdin = streams.stdin;
    this.env = streams.env;
    this.#stdout = streams.stdout;
    this.#stderr = streams.stderr;
  }

  /** Lines for whoever reads the result. */
  out(text: string): void {
    this.#stdout.write(text.endsWith('\n') ? text : `${text}\n`);
  }

  /** Bytes as they are, for what is exported. */
  raw(text: string): void {
    this.#stdout.write(text);
  }

  /** Lines about the run itself; never part of a result. */
  note(text: string): void {
    this.#stderr.write(text.endsWith('\n') ? text : `${text}\n`);
  }

  /** One JSON document, the whole result of `--json`. */
  json(value: unknown): void {
    this.out(JSON.stringify(value, null, 2));
  }

  /** The prompt of a question goes to stderr: stdout may be a pipe. */
  get promptStream(): Writable {
    return this.#stderr;
  }

  /** Wraps a command's function for commander: what it gives is the exit code. */
  action<A extends unknown[]>(handler: (...args: A) => ExitCode | Promise<ExitCode>): (...args: A) => Promise<void> {
    return async (...args) => {
      this.exitCode = await handler(...args);
    };
  }
}

/** A wrong use that commander does not see; the message is for the user, exit 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}
