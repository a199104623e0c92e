/** CPU time of a process and everything below it, from `/proc/PID/stat` (proc(5)). */
import { readdirSync, readFileSync } from 'node:fs';

/** What one stat line says, times in clock ticks. */
export interface ProcessStat {
  readonly pid: number;
  readonly parentPid: number;
  /** user + system time of the process itself. */
  readonly ownTicks: number;
  /** user + system time of its children that have ended and been waited for. */
  readonly childTicks: number;
  /** Start time since boot: with the pid it names one process even after pid reuse. */
  readonly startTicks: number;
}

/** USER_HZ: what `/proc` counts in is fixed at 100 by the Linux user-space ABI, whatever the kernel's own tick is. */
export const TICKS_PER_SECOND = 100;

/** Reads one stat line; null when it is not one. The command name may hold spaces and parentheses, so fields count from the last `)`. */
export function parseProcStat(line: string): ProcessStat | null {
  const close = line.lastIndexOf(')');
  const pid = Number.parseInt(line, 10);
  if (close < 0 || !Number.isSafeInteger(pid)) return null;
  const fields = line
    .slice(close + 2)
    .trim()
    .split(/ +/)
    .map(Number);
  // Numbers of proc(5), less three: pid, comm and state come before or first.
  const [parentPid, user, system, childUser, childSystem, startTicks] = [1, 11, 12, 13, 14, 19].map((at) => fields[at]);
  const all = [parentPid, user, system, childUser, childSystem, startTicks];
  if (!all.every((value): value is number => value !== undefined && Number.isFinite(value))) return null;
  const [parent = 0, u = 0, s = 0, cu = 0, cs = 0, start = 0] = all;
  return { pid, parentPid: parent, ownTicks: u + s, childTicks: cu + cs, startTicks: start };
}

/** Of all `processes`, the root and everything below it. Empty when the root is not there. */
export function treeOf(root: number, processes: readonly ProcessStat[]): readonly ProcessStat[] {
  const below = new Map<number, ProcessStat[]>();
  for (const one of processes) below.set(one.parentPid, [...(below.get(one.parentPid) ?? []), one]);
  const tree = processes.filter((one) => one.pid === root);
  for (let at = 0; at < tree.length; at++) {
    const next = tree[at];
    if (next !== undefined) tree.push(...(below.get(next.pid) ?? []));
  }
  return tree;
}

/** CPU seconds × 1,000,000 used so far by `pid` and everything below it, ended children included. Resolution 10 ms. */
export function treeCpuUs(pid: number): number {
  const ticks = processTree(pid).reduce((sum, one) => sum + one.ownTicks + one.childTicks, 0);
  return (ticks * 1e6) / TICKS_PER_SECOND;
}

/** The live processes at and below `pid`. */
export function processTree(pid: number): readonly ProcessStat[] {
  const all = readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .flatMap((name) => readStat(Number(name)) ?? []);
  return treeOf(pid, all);
}

/** The stat of one process, or null when it has gone. */
export function readStat(pid: number): ProcessStat | null {
  try {
    return parseProcStat(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    // A process may end between listing and reading; gone is an answer, not a failure.
    return null;
  }
}
