/** Starts a gateway in a process of its own: see gateway-process.ts. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import type { GatewayConfig } from '../../gateway/index.ts';
import type { GatewayProcessReady } from './gateway-process.ts';
import { plainEnvironment } from './run-command.ts';

const program = fileURLToPath(new URL('./gateway-process.js', import.meta.url));

/** The process, with its code loaded and waiting for a configuration. `maxFiles`: how many descriptors it may have. */
export function startProcess(t: ExecutionContext, maxFiles?: number): ChildProcess {
  const limited = ['-c', `ulimit -n ${maxFiles} && exec "$0" "$@"`, process.execPath, program];
  const [command, args] = maxFiles === undefined ? [process.execPath, [program]] : ['/bin/sh', limited];
  const child = spawn(command, args, { env: plainEnvironment('/nonexistent'), stdio: ['pipe', 'pipe', 'ignore'] });
  // A killed reader breaks the pipe; its exit is what the test waits for.
  child.stdin?.on('error', () => {});
  t.teardown(() => child.kill('SIGKILL'));
  return child;
}

/** Gives it its configuration; resolves when it serves. */
export async function begin(child: ChildProcess, config: GatewayConfig): Promise<GatewayProcessReady> {
  child.stdin?.write(`${JSON.stringify(config)}\n`);
  if (child.stdout === null) throw new Error('the child has no stdout');
  for await (const line of createInterface({ input: child.stdout })) {
    // Printed by gateway-process.ts.
    return JSON.parse(line) as GatewayProcessReady;
  }
  throw new Error(`the gateway ended with ${child.exitCode ?? child.signalCode} before it was ready`);
}
