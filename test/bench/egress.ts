/** The egress bench: every target up at once, short bursts rotating over them, ratios paired per round. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkTarget } from './check-target.ts';
import { goals, type Measured, printReport, type Round, report, summarise } from './egress-report.ts';
import { installPeers } from './install-peers.ts';
import type { BurstResult, TargetSpec } from './loadgen.ts';
import { direct } from './peers/direct.ts';
import { mitmproxy } from './peers/mitmproxy.ts';
import { nginxLua, nginxLuaUnpooled } from './peers/nginx-lua.ts';
import type { Peer, PeerContext } from './peers/peer.ts';
import { sallyport } from './peers/sallyport.ts';
import { squid } from './peers/squid.ts';
import { createPki, readPem } from './pki.ts';
import { findProgram } from './programs.ts';
import { type Undo, withUndo } from './undo.ts';
import { Worker } from './worker.ts';

export interface EgressOptions {
  readonly json: boolean;
  /** Fetch missing peers from Debian first; needs root. */
  readonly install?: boolean;
  /** Default 12, about 2 minutes with all targets. */
  readonly rounds?: number;
  /** Length of one burst; default 1. */
  readonly seconds?: number;
  /** Numbers of keep-alive connections; default [16]. */
  readonly connections?: readonly number[];
  /** Node binary for the gateway; default: this one. */
  readonly nodePath?: string;
  /** Names of targets; default: all. */
  readonly targets?: readonly string[];
}

const ALL: readonly Peer[] = [direct, nginxLua, nginxLuaUnpooled, squid, mitmproxy, sallyport];
/** Warm-up of each target at each number of connections: compilers, caches and pools settle in requests, not in seconds. */
const WARM_UP = { burstMs: 500, requests: 20_000, maxBursts: 10 } as const;

/** A target that did not take part, and why. */
interface Absent {
  readonly name: string;
  readonly reason: string;
}

/** Runs it and prints the table (unless `json`); gives the figures. @throws Error when nothing can be measured */
export async function bench(options: EgressOptions): Promise<unknown> {
  const wanted = ALL.filter((peer) => options.targets === undefined || options.targets.includes(peer.name));
  const unknown = (options.targets ?? []).filter((name) => !ALL.some((peer) => peer.name === name));
  if (unknown.length > 0) {
    throw new Error(
      `Cannot run bench egress: no target ${unknown.join(', ')}; there are ${ALL.map((peer) => peer.name).join(', ')}`,
    );
  }
  const run = await withUndo((undo) => {
    if (options.install === true) installPeers([...new Set(wanted.flatMap((peer) => peer.packages))]);
    return measureAll(wanted, options, undo);
  });
  if (!options.json) printReport(run);
  return run;
}

async function measureAll(wanted: readonly Peer[], options: EgressOptions, undo: Undo) {
  const dir = mkdtempSync(join(tmpdir(), 'sallyport-bench-'));
  undo.add(() => rmSync(dir, { recursive: true, force: true }));
  // Peers that root starts give up their rights and must still reach their own files; keys in there stay 0600.
  chmodSync(dir, 0o711);
  const cpus = availableParallelism() >= 2 && findProgram('taskset') !== null ? { target: 0, load: 1 } : null;
  const pki = createPki(dir);
  const origin = new Worker('origin', cpus?.load ?? null);
  undo.add(() => origin.close());
  const listen = { certPem: readPem(pki.originLeaf.cert), keyPem: readPem(pki.originLeaf.key) };
  const { port: originPort } = await origin.call<{ port: number }>('listen', listen);
  const loadgen = new Worker('loadgen', cpus?.load ?? null);
  undo.add(() => loadgen.close());
  const nodePath = options.nodePath ?? process.execPath;
  const context: PeerContext = { pki, originPort, cpu: cpus?.target ?? null, nodePath, undo };
  const started = await startAll(wanted, dir, context, { origin, loadgen, undo });
  const method = {
    rounds: options.rounds ?? 12,
    seconds: options.seconds ?? 1,
    pinned: cpus !== null,
    node: nodePath,
  };
  const results: Measured[] = [];
  for (const connections of options.connections ?? [16]) {
    const rounds = await rotate(started.names, connections, method, loadgen);
    results.push(summarise(connections, started.names, rounds));
  }
  return report({ method, skipped: started.skipped, failed: started.failed, results, goals: goals(results) });
}

interface Helpers {
  readonly origin: Worker;
  readonly loadgen: Worker;
  readonly undo: Undo;
}

/** Starts and checks every target; one that fails its check is stopped and named, not measured. */
async function startAll(wanted: readonly Peer[], dir: string, context: PeerContext, helpers: Helpers) {
  const names: string[] = [];
  const skipped: Absent[] = [];
  const failed: Absent[] = [];
  for (const peer of wanted) {
    const lacking = peer.available();
    if (lacking !== null) {
      skipped.push({ name: peer.name, reason: lacking });
      continue;
    }
    progress(`starting ${peer.name}`);
    try {
      await startOne(peer, dir, context, helpers);
      names.push(peer.name);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      failed.push({ name: peer.name, reason });
      progress(`${peer.name}: ${reason}`);
    }
  }
  if (names.length === 0) throw new Error('Cannot run bench egress: no target could be started');
  return { names, skipped, failed };
}

async function startOne(peer: Peer, dir: string, context: PeerContext, helpers: Helpers): Promise<void> {
  const own = join(dir, peer.name);
  mkdirSync(own);
  const running = await peer.start(own, context);
  const wrong = await checkTarget(running.access, helpers.origin, peer.isFloor === true);
  if (wrong.length > 0) {
    const said = running.said().trim();
    await running.stop();
    throw new Error(`it does not do the job: ${wrong.join('; ')}${said === '' ? '' : `\n${said}`}`);
  }
  const spec: TargetSpec = { name: peer.name, access: running.access, pid: running.pid };
  await helpers.loadgen.call('target', spec);
}

/** A warm-up each, then the rounds; the order turns by one each round, so nobody always follows the same neighbour. */
async function rotate(
  names: readonly string[],
  connections: number,
  method: { readonly rounds: number; readonly seconds: number },
  loadgen: Worker,
): Promise<readonly Round[]> {
  const burst = (target: string, durationMs: number) =>
    loadgen.call<BurstResult>('burst', { target, connections, durationMs });
  for (const name of names) await warmUp((durationMs) => burst(name, durationMs));
  const rounds: Round[] = [];
  for (let round = 0; round < method.rounds; round++) {
    progress(`${connections} connections: round ${round + 1} of ${method.rounds}`);
    const results = new Map<string, BurstResult>();
    for (let at = 0; at < names.length; at++) {
      const name = names[(at + round) % names.length];
      if (name !== undefined) results.set(name, await burst(name, method.seconds * 1e3));
    }
    rounds.push(results);
  }
  return rounds;
}

async function warmUp(burst: (durationMs: number) => Promise<BurstResult>): Promise<void> {
  for (let done = 0, bursts = 0; done < WARM_UP.requests && bursts < WARM_UP.maxBursts; bursts++) {
    done += (await burst(WARM_UP.burstMs)).requests;
  }
}

function progress(text: string): void {
  process.stderr.write(`${text}\n`);
}
