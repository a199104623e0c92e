/** Starts a long-lived program on a given CPU, waits until it listens, and ends it and all its children by pid. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type ProcessStat, processTree, readStat } from './cpu.ts';
import { findProgram } from './programs.ts';
import type { Undo } from './undo.ts';

export interface DaemonOptions {
  /** CPU to pin to; null = anywhere. */
  readonly cpu: number | null;
  /** Loopback port whose opening means ready. */
  readonly port: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Gets the stop before the program is ready, so an interruption during start-up leaves nothing behind. */
  readonly undo: Undo;
}

export interface Daemon {
  readonly pid: number;
  /** The last it has written to stdout and stderr. */
  said(): string;
  /** Ends the whole tree; may be called twice. */
  stop(): Promise<void>;
}

/** Debian's mitmproxy needs some seconds of start-up on a busy machine. */
const READY_TIMEOUT_MS = 30_000;
const POLL_MS = 25;
/** How long SIGTERM may take before SIGKILL. */
const STOP_TIMEOUT_MS = 3_000;
/** Last output kept for the message of a failed start. */
const TAIL_CHARS = 1_000;

/** @throws Error with the end of the program's output when it ends or does not listen in time. */
export async function startDaemon(program: string, args: readonly string[], options: DaemonOptions): Promise<Daemon> {
  const child = spawnPinned(program, args, {
    cpu: options.cpu,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(options.env === undefined ? {} : { env: options.env }),
  });
  const tail = collectTail(child);
  const stop = () => stopChild(child);
  options.undo.add(stop);
  try {
    await untilListening(child, options.port);
  } catch (cause) {
    await stop();
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`Cannot start ${program}: ${why}. Output: ${tail().trim() || 'none'}`, { cause });
  }
  return { pid: child.pid ?? 0, said: tail, stop };
}

/** `spawn`, pinned to one CPU where taskset is there. taskset execs, so the pid is the program's own. */
export function spawnPinned(
  program: string,
  args: readonly string[],
  options: {
    readonly cpu: number | null;
    readonly stdio: StdioOptions;
    readonly env?: Readonly<Record<string, string>>;
  },
): ChildProcess {
  const taskset = options.cpu === null ? null : findProgram('taskset');
  const [first, ...rest] = taskset === null ? [program, ...args] : [taskset, '-c', `${options.cpu}`, program, ...args];
  return spawn(first, rest, { stdio: options.stdio, env: { ...process.env, ...options.env } });
}

/** Ends a child and everything below it: SIGTERM, then SIGKILL for whatever is still the same process. */
export async function stopChild(child: ChildProcess): Promise<void> {
  if (child.pid === undefined) return;
  const tree = processTree(child.pid);
  if (child.exitCode === null && child.signalCode === null) {
    const ended = new Promise<boolean>((resolve) => child.once('exit', () => resolve(true)));
    child.kill('SIGTERM');
    if (!(await Promise.race([ended, delay(STOP_TIMEOUT_MS, false, { ref: false })]))) child.kill('SIGKILL');
  }
  for (const one of tree) if (isSame(one)) kill(one.pid);
}

/** A loopback port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('Cannot find a free port: no address');
  return address.port;
}

async function untilListening(child: ChildProcess, port: number): Promise<void> {
  let failure: Error | null = null;
  child.once('error', (error) => {
    failure = error;
  });
  for (const end = Date.now() + READY_TIMEOUT_MS; Date.now() < end; await delay(POLL_MS)) {
    if (failure !== null) throw failure;
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`it ended (${child.exitCode ?? child.signalCode})`);
    if (await canConnect(port)) return;
  }
  throw new Error(`it did not listen on port ${port} within ${READY_TIMEOUT_MS} ms`);
}

function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function collectTail(child: ChildProcess): () => string {
  let tail = '';
  const keep = (text: string) => {
    tail = (tail + text).slice(-TAIL_CHARS);
  };
  child.stdout?.setEncoding('utf8').on('data', keep);
  child.stderr?.setEncoding('utf8').on('data', keep);
  return () => tail;
}

function isSame(one: ProcessStat): boolean {
  return readStat(one.pid)?.startTicks === one.startTicks;
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended on its own between the look and the signal.
  }
}
