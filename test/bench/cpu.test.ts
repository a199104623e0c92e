import test from 'ava';
import fc from 'fast-check';
import { type ProcessStat, parseProcStat, processTree, treeCpuUs, treeOf } from './cpu.ts';

const LINE =
  '4242 (nginx) S 4200 4242 4200 0 -1 4194560 1000 2000 3 4 11 22 33 44 20 0 1 0 987654 12345678 900 18446744073709551615 1 1 0 0 0';

const EXPECTED: ProcessStat = { pid: 4242, parentPid: 4200, ownTicks: 33, childTicks: 77, startTicks: 987654 };

test('parseProcStat() reads times, parent and start', (t) => {
  t.deepEqual(parseProcStat(LINE), EXPECTED);
  t.deepEqual(parseProcStat(`${LINE}\n`), EXPECTED);
});

test('parseProcStat() counts fields from the last parenthesis when the name holds some', (t) => {
  t.deepEqual(parseProcStat(LINE.replace('(nginx)', '(a) R 1 2 (b c)')), EXPECTED);
});

for (const [what, line] of [
  ['nothing', ''],
  ['a line without a name', '1 2 3'],
  ['a line cut short', LINE.slice(0, 60)],
  ['a line with a word for a time', LINE.replace(' 11 22 ', ' 11 x ')],
] as const) {
  test(`parseProcStat() gives null for ${what}`, (t) => t.is(parseProcStat(line), null));
}

test('parseProcStat() never throws, and what it gives is numbers', (t) => {
  const text = fc.oneof(
    fc.string(),
    fc.string().map((name) => LINE.replace('nginx', name)),
  );
  fc.assert(
    fc.property(text, (line) => {
      const stat = parseProcStat(line);
      return stat === null || Object.values(stat).every(Number.isFinite);
    }),
  );
  t.pass();
});

test('treeOf() gives the root and everything below it, in any order of the list', (t) => {
  const all = [stat(9, 5), stat(5, 2), stat(2, 1), stat(3, 1), stat(1, 0), stat(7, 2)];
  t.deepEqual(
    treeOf(2, all)
      .map(({ pid }) => pid)
      .sort(),
    [2, 5, 7, 9],
  );
  t.deepEqual(treeOf(77, all), []);
});

test('treeCpuUs() grows while this process works', (t) => {
  const before = treeCpuUs(process.pid);
  const start = process.cpuUsage();
  while (process.cpuUsage(start).user + process.cpuUsage(start).system < 40_000) Math.sqrt(2);
  t.true(treeCpuUs(process.pid) - before >= 20_000);
  t.true(processTree(process.pid).some(({ pid }) => pid === process.pid));
});

function stat(pid: number, parentPid: number): ProcessStat {
  return { pid, parentPid, ownTicks: 0, childTicks: 0, startTicks: 0 };
}
