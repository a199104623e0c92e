/** The load generator, its own process: keep-alive lanes over raw TLS sockets, prebuilt request bytes, closed loop. */
import { setTimeout as delay } from 'node:timers/promises';
import { createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { type Access, openConnection } from './access.ts';
import { treeCpuUs } from './cpu.ts';
import { ResponseReader } from './response-reader.ts';
import { sortedQuantile } from './stats.ts';
import { serve } from './worker.ts';
import { measuredRequest, requestBytes } from './workload.ts';

export interface TargetSpec {
  readonly name: string;
  readonly access: Access;
  /** Root of the process tree whose CPU is counted; null = none (direct). */
  readonly pid: number | null;
}

export interface BurstCall {
  readonly target: string;
  readonly connections: number;
  readonly durationMs: number;
}

/** One burst against one target. */
export interface BurstResult {
  readonly requests: number;
  /** Answers that were not 200, and lanes lost. */
  readonly errors: number;
  readonly elapsedUs: number;
  /** User + system time of the target's tree; null without a pid. */
  readonly cpuUs: number | null;
  readonly p50Us: number;
  readonly p99Us: number;
  /** The generator's own CPU time, to see that it is not what was measured. */
  readonly ownCpuUs: number;
}

/** Work a target puts off (log writes, hashing) still counts: its CPU is read this long after the last answer. */
const SETTLE_MS = 50;
/** A lane that waits longer than this for an answer is given up. */
const STALL_MS = 10_000;
/** Lanes opened at the same time; more only makes handshakes queue. */
const OPENING = 8;

interface Target {
  readonly spec: TargetSpec;
  readonly context: SecureContext;
  readonly lanes: Lane[];
}

const targets = new Map<string, Target>();

serve({
  target: (spec: TargetSpec): null => {
    targets.set(spec.name, { spec, context: createSecureContext({ ca: spec.access.caPem }), lanes: [] });
    return null;
  },
  burst: (call: BurstCall) => burst(call),
});

async function burst(call: BurstCall): Promise<BurstResult> {
  const target = targets.get(call.target);
  if (target === undefined) throw new Error(`Cannot run burst: no target ${call.target}`);
  const lanes = await readyLanes(target, call.connections);
  const latencies: number[] = [];
  const cpuBefore = target.spec.pid === null ? null : treeCpuUs(target.spec.pid);
  const own = process.cpuUsage();
  const start = performance.now();
  const ended = await Promise.all(lanes.map((lane) => lane.run(start + call.durationMs, latencies)));
  const elapsedUs = (performance.now() - start) * 1e3;
  const { user, system } = process.cpuUsage(own);
  await delay(SETTLE_MS);
  const cpuAfter = target.spec.pid === null ? null : treeCpuUs(target.spec.pid);
  const sorted = Float64Array.from(latencies).sort();
  return {
    requests: latencies.length,
    errors: ended.reduce((sum, errors) => sum + errors, 0),
    elapsedUs,
    cpuUs: cpuBefore === null || cpuAfter === null ? null : cpuAfter - cpuBefore,
    p50Us: sortedQuantile(sorted, 0.5) * 1e3,
    p99Us: sortedQuantile(sorted, 0.99) * 1e3,
    ownCpuUs: user + system,
  };
}

/** The first `count` lanes, open and each with one answer behind it. Lanes live on between bursts. */
async function readyLanes(target: Target, count: number): Promise<readonly Lane[]> {
  while (target.lanes.length < count) target.lanes.push(new Lane(target, target.lanes.length));
  const lanes = target.lanes.slice(0, count);
  for (let at = 0; at < count; at += OPENING) {
    await Promise.all(lanes.slice(at, at + OPENING).map((lane) => lane.open()));
  }
  for (const lane of lanes) await lane.run(0, []);
  return lanes;
}

/** One keep-alive connection with one request in flight. */
class Lane {
  readonly #target: Target;
  readonly #host: string;
  readonly #request: Buffer;
  #socket: TLSSocket | null = null;
  #reader = new ResponseReader();
  #onAnswer: (status: number) => void = () => {};

  constructor(target: Target, index: number) {
    const request = measuredRequest(index);
    this.#target = target;
    this.#host = request.host;
    this.#request = requestBytes(request, target.spec.access.hostPort);
  }

  async open(): Promise<void> {
    if (this.#socket !== null) return;
    const socket = await openConnection(this.#target.spec.access, this.#host, this.#target.context);
    this.#socket = socket;
    this.#reader = new ResponseReader();
    // As in origin.ts: push() is where the TLS layer hands over its bytes.
    socket.push = (chunk: Buffer | null) => {
      if (chunk === null) {
        socket.destroy();
        return false;
      }
      this.#take(socket, chunk);
      return true;
    };
    socket.setTimeout(STALL_MS, () => this.#isBusy && socket.destroy());
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#lost());
    socket.resume();
  }

  #isBusy = false;

  /** Sends requests one after the other until `deadline` (at least one); gives the number of errors. */
  run(deadline: number, latencies: number[]): Promise<number> {
    let errors = 0;
    return new Promise((resolve) => {
      let sent = 0;
      const end = () => {
        this.#isBusy = false;
        resolve(errors);
      };
      const send = (now: number) => {
        if (this.#socket === null) {
          errors++;
          end();
          return;
        }
        sent = now;
        this.#socket.write(this.#request);
      };
      this.#onAnswer = (status) => {
        const now = performance.now();
        if (status === 200) latencies.push(now - sent);
        else errors++;
        if (status === 0 || now >= deadline) end();
        else send(now);
      };
      this.#isBusy = true;
      send(performance.now());
    });
  }

  #take(socket: TLSSocket, chunk: Buffer): void {
    try {
      const answer = this.#reader.push(chunk);
      if (answer !== null) this.#onAnswer(answer.status);
    } catch (error) {
      socket.destroy(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #lost(): void {
    this.#socket = null;
    if (this.#isBusy) this.#onAnswer(0);
  }
}
