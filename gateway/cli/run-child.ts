/** Starts a command in our place: same terminal, its signals forwarded, its exit code ours. */
import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { ExitCode } from './cli.ts';

/** As env(1): the command was found but could not be started, or not found. */
export const CANNOT_EXECUTE = 126;
export const NOT_FOUND = 127;

export interface ChildOptions {
  readonly env: Readonly<Record<string, string>>;
  /** With a terminal, the kernel sends Ctrl-C and Ctrl-\ to the child already; a second one would mean "at once" to many. */
  readonly hasTerminal: boolean;
  readonly note: (text: string) => void;
}

/** Resolves when the command ended: its code, or 128 + n for signal n. */
export function runChild(command: string, args: readonly string[], options: ChildOptions): Promise<ExitCode> {
  return new Promise((resolve) => {
    let child: ChildProcess | null = null;
    // Before the command starts: a signal that came between would end us by its default and leave the command behind.
    const forwards = forwarded.map((signal) => {
      const isFromTerminal = options.hasTerminal && (signal === 'SIGINT' || signal === 'SIGQUIT');
      const listener = (): void => {
        if (!isFromTerminal) child?.kill(signal);
      };
      process.on(signal, listener);
      return { signal, listener };
    });
    const finish = (code: ExitCode): void => {
      for (const { signal, listener } of forwards) process.off(signal, listener);
      resolve(code);
    };
    child = spawn(command, args, { env: options.env, stdio: 'inherit' });
    child.once('error', (error: NodeJS.ErrnoException) => {
      options.note(`sallyport: Cannot start the command: ${error.code ?? 'it failed'}`);
      finish(error.code === 'ENOENT' ? NOT_FOUND : CANNOT_EXECUTE);
    });
    child.once('exit', (code, signal) => finish(signal === null ? (code ?? 0) : 128 + constants.signals[signal]));
  });
}

/** SIGUSR1 too: unhandled, Node would open its inspector, and this process has the environment with the secrets. */
const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const;
