/** From bursts to figures: medians over rounds, ratios paired per round, the table and the JSON object. */
import { cpus, release } from 'node:os';
import type { BurstResult } from './loadgen.ts';
import { pairedRatio, type Quartiles, quantile } from './stats.ts';

/** One round: a burst for each target. */
export type Round = ReadonlyMap<string, BurstResult>;

/** A ratio over rounds. */
type Ratio = (Quartiles & { readonly pairs: number }) | null;

export interface TargetFigures {
  readonly name: string;
  /** Medians over rounds. */
  readonly cpuUs: number | null;
  readonly requestsPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** Against the base target, paired per round. */
  readonly ratio: { readonly cpu: Ratio; readonly requestsPerSecond: Ratio; readonly p50: Ratio; readonly p99: Ratio };
  readonly requests: number;
  readonly errors: number;
  /** CPU of the load generator a request: when it nears what a core can do, the target was not the limit. */
  readonly loadgenCpuUs: number;
}

export interface Measured {
  readonly connections: number;
  readonly base: string | null;
  readonly targets: readonly TargetFigures[];
  /** Ours against each peer: CPU a request. */
  readonly ours: Readonly<Record<string, Ratio>>;
}

export interface Goal {
  readonly goal: string;
  readonly limit: number;
  readonly cpu: Ratio;
  /** null = not measured in this run. */
  readonly met: boolean | null;
}

export interface EgressRun {
  readonly method: {
    readonly rounds: number;
    readonly seconds: number;
    readonly pinned: boolean;
    readonly node: string;
  };
  readonly skipped: readonly { readonly name: string; readonly reason: string }[];
  readonly failed: readonly { readonly name: string; readonly reason: string }[];
  readonly results: readonly Measured[];
  readonly goals: readonly Goal[];
}

/** What every ratio is against, unless it did not take part. */
const BASE = 'nginx-lua';
const OURS = 'sallyport';
const GOAL_CONNECTIONS = 16;
const LIMITS: Readonly<Record<string, number>> = {
  'nginx-lua': 1.4,
  'nginx-lua-unpooled': 0.1,
  squid: 0.5,
  mitmproxy: 0.05,
};

/** All rounds at one number of connections. */
export function summarise(connections: number, names: readonly string[], rounds: readonly Round[]): Measured {
  const base = names.includes(BASE) ? BASE : null;
  const of = (name: string) => rounds.map((round) => round.get(name));
  const ours = names.includes(OURS) ? names.filter((name) => name in LIMITS) : [];
  return {
    connections,
    base,
    targets: names.map((name) => figures(name, of(name), base === null ? [] : of(base))),
    ours: Object.fromEntries(ours.map((name) => [name, pairedRatio(of(OURS).map(cpuUs), of(name).map(cpuUs))])),
  };
}

/** The goals of ours against each peer, at 16 connections. */
export function goals(results: readonly Measured[]): readonly Goal[] {
  const measured = results.find((one) => one.connections === GOAL_CONNECTIONS);
  return Object.entries(LIMITS).map(([name, limit]) => {
    const cpu = measured?.ours[name] ?? null;
    return { goal: `${OURS} / ${name}`, limit, cpu, met: cpu === null ? null : cpu.median <= limit };
  });
}

/** The JSON object: the run and the machine it ran on. */
export function report(run: EgressRun) {
  const machine = {
    cpus: cpus().length,
    model: cpus()[0]?.model ?? 'unknown',
    kernel: release(),
    node: process.version,
  };
  return { bench: 'egress', machine, ...run };
}

/** The tables, for people. */
export function printReport(run: EgressRun): void {
  for (const measured of run.results) printMeasured(measured, run.method);
  if (run.goals.some((goal) => goal.met !== null)) printGoals(run.goals);
  for (const { name, reason } of run.skipped) console.log(`skipped ${name}: ${reason}`);
  for (const { name, reason } of run.failed) console.log(`FAILED ${name}: ${reason}`);
}

function figures(
  name: string,
  own: readonly (BurstResult | undefined)[],
  base: readonly (BurstResult | undefined)[],
): TargetFigures {
  const ratio = (of: (burst: BurstResult | undefined) => number | null) => pairedRatio(own.map(of), base.map(of));
  const median = (of: (burst: BurstResult | undefined) => number | null) =>
    quantile(
      own.map(of).filter((value) => value !== null),
      0.5,
    );
  const cpu = median(cpuUs);
  return {
    name,
    cpuUs: Number.isNaN(cpu) ? null : cpu,
    requestsPerSecond: median(requestsPerSecond),
    p50Us: median(p50),
    p99Us: median(p99),
    ratio: { cpu: ratio(cpuUs), requestsPerSecond: ratio(requestsPerSecond), p50: ratio(p50), p99: ratio(p99) },
    requests: own.reduce((sum, burst) => sum + (burst?.requests ?? 0), 0),
    errors: own.reduce((sum, burst) => sum + (burst?.errors ?? 0), 0),
    loadgenCpuUs: median((burst) => perRequest(burst, burst?.ownCpuUs ?? null)),
  };
}

function cpuUs(burst: BurstResult | undefined): number | null {
  return perRequest(burst, burst?.cpuUs ?? null);
}

function perRequest(burst: BurstResult | undefined, totalUs: number | null): number | null {
  return burst === undefined || totalUs === null || burst.requests === 0 ? null : totalUs / burst.requests;
}

function requestsPerSecond(burst: BurstResult | undefined): number | null {
  return burst === undefined ? null : (burst.requests * 1e6) / burst.elapsedUs;
}

function p50(burst: BurstResult | undefined): number | null {
  return burst?.p50Us ?? null;
}

function p99(burst: BurstResult | undefined): number | null {
  return burst?.p99Us ?? null;
}

function printMeasured(measured: Measured, method: EgressRun['method']): void {
  const pinned = method.pinned ? 'target on CPU 0, load and origin on CPU 1' : 'not pinned';
  const against = measured.base === null ? 'no base to compare with' : `× = against ${measured.base}, same round`;
  console.log(
    `\n${measured.connections} connections, ${method.rounds} rounds of ${method.seconds} s, ${pinned}; median over rounds; ${against}: median (quartiles)\n`,
  );
  const rows = measured.targets.map((one) => [
    one.name,
    one.cpuUs === null ? '-' : one.cpuUs.toFixed(1),
    ratioText(one.ratio.cpu),
    one.requestsPerSecond.toFixed(0),
    ratioText(one.ratio.requestsPerSecond),
    (one.p50Us / 1e3).toFixed(2),
    ratioText(one.ratio.p50),
    (one.p99Us / 1e3).toFixed(2),
    ratioText(one.ratio.p99),
    `${one.errors}`,
  ]);
  printTable([['target', 'CPU µs/req', '×', 'req/s', '×', 'p50 ms', '×', 'p99 ms', '×', 'errors'], ...rows]);
}

function printGoals(all: readonly Goal[]): void {
  console.log(`\nGoals at ${GOAL_CONNECTIONS} connections, CPU per request:\n`);
  const word = (met: boolean | null) => (met === null ? 'not measured' : met ? 'met' : 'MISSED');
  printTable(all.map((one) => [one.goal, `≤ ${one.limit}`, ratioText(one.cpu), word(one.met)]));
}

function ratioText(ratio: Ratio): string {
  if (ratio === null) return '-';
  const text = (value: number) => (value < 0.1 ? value.toFixed(3) : value < 10 ? value.toFixed(2) : value.toFixed(1));
  return `${text(ratio.median)} (${text(ratio.q1)}–${text(ratio.q3)})`;
}

function printTable(rows: readonly (readonly string[])[]): void {
  const widths = rows.reduce<number[]>((all, row) => row.map((cell, at) => Math.max(all[at] ?? 0, cell.length)), []);
  for (const row of rows) {
    const cells = row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)));
    console.log(`  ${cells.join('  ').trimEnd()}`);
  }
}
