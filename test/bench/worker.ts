/** A helper process of ours (origin, load generator) spoken to by IPC: one call, one answer. */
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { spawnPinned, stopChild } from './daemon.ts';

/** The longest burst plus opening 64 connections through the slowest peer. */
const CALL_TIMEOUT_MS = 120_000;

interface Reply {
  readonly id: number;
  readonly value?: unknown;
  readonly failure?: string;
}

/** Parent side. `close()` may be called twice. */
export class Worker {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #next = 0;

  /** `name` is a file beside this one. */
  constructor(name: 'origin' | 'loadgen', cpu: number | null) {
    const file = fileURLToPath(new URL(`./${name}.js`, import.meta.url));
    this.#child = spawnPinned(process.execPath, [file], { cpu, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    // Cast: only our own worker writes to this channel, always through serve() below.
    this.#child.on('message', (message) => this.#answer(message as Reply));
    this.#child.on('exit', (code) => this.#failAll(`Cannot ask ${name}: it ended (${code})`));
    this.#child.on('error', (error) => this.#failAll(`Cannot start ${name}: ${error.message}`));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Sends one call. The type of the answer is the worker's promise: both ends are compiled together. */
  call<T>(operation: string, argument: unknown = null): Promise<T> {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => this.#answer({ id, failure: `No answer to ${operation} in ${CALL_TIMEOUT_MS} ms` }),
        CALL_TIMEOUT_MS,
      );
      this.#waiting.set(id, (reply) => {
        clearTimeout(timer);
        // Cast: see the doc line; the handlers in the worker return exactly these types.
        if (reply.failure === undefined) resolve(reply.value as T);
        else reject(new Error(reply.failure));
      });
      if (this.#child.connected) this.#child.send({ id, operation, argument });
      else this.#answer({ id, failure: `Cannot call ${operation}: the worker has ended` });
    });
  }

  close(): Promise<void> {
    return stopChild(this.#child);
  }

  #answer(reply: Reply): void {
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    waiting?.(reply);
  }

  #failAll(failure: string): void {
    for (const id of [...this.#waiting.keys()]) this.#answer({ id, failure });
  }
}

/** Worker side: answers calls with `handlers`; ends when the parent goes. */
export function serve(handlers: Readonly<Record<string, (argument: never) => unknown>>): void {
  process.on('disconnect', () => process.exit(0));
  // Ctrl-C reaches the whole terminal group; the parent decides when this process ends.
  process.on('SIGINT', () => {});
  process.on('message', (message: { id: number; operation: string; argument: never }) => {
    const { id, operation, argument } = message;
    Promise.resolve()
      .then(() => handlers[operation]?.(argument))
      .then(
        (value) => process.send?.({ id, value }),
        (error: unknown) => process.send?.({ id, failure: error instanceof Error ? error.message : String(error) }),
      );
  });
}
