/** The command line as a test runs it: inside this process, or as the process a user starts. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { runCli } from '../../../gateway/cli/run-cli.ts';

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** Options of node itself. */
  readonly nodeArgs?: readonly string[];
  readonly onStart?: (pid: number) => void;
}

export const mainFile = fileURLToPath(new URL('../../../gateway/cli/main.js', import.meta.url));

/** A folder of the test's own, short enough for socket paths. */
export function temporaryFolder(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'spt-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Runs a command in this process. */
export async function command(args: readonly string[], options: CommandOptions = {}): Promise<Outcome> {
  const stdout = collector();
  const stderr = collector();
  const streams = {
    stdin: Readable.from(options.stdin === undefined ? [] : [Buffer.from(options.stdin)]),
    stdout: stdout.stream,
    stderr: stderr.stream,
    env: options.env ?? {},
  };
  const code = await runCli(args, streams);
  return { code, stdout: stdout.text(), stderr: stderr.text() };
}

/** Starts the built program with an environment of just PATH and what is given. */
export function started(args: readonly string[], options: CommandOptions = {}): Promise<Outcome> {
  const child = spawn(process.execPath, [...(options.nodeArgs ?? []), mainFile, ...args], {
    env: { PATH: process.env.PATH ?? '', NODE_NO_WARNINGS: '1', ...options.env },
    stdio: 'pipe',
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => {});
  child.stdin.end(options.stdin ?? '');
  if (child.pid !== undefined) options.onStart?.(child.pid);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}

function collector(): { stream: PassThrough; text: () => string } {
  const stream = new PassThrough();
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return { stream, text: () => Buffer.concat(chunks).toString('utf8') };
}
