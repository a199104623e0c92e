import { join } from 'node:path';
import test from 'ava';
import { type StoredRecord, tailAudit } from '../../../gateway/audit/index.ts';
import { logFiles, openLog, tempDir, writeMany } from './fixture.ts';

async function collect(records: AsyncIterable<StoredRecord>, count = Number.POSITIVE_INFINITY): Promise<number[]> {
  const seqs: number[] = [];
  for await (const record of records) {
    seqs.push(record.seq);
    if (seqs.length >= count) break;
  }
  return seqs;
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

test('tailAudit() gives the last records, across files, when it does not follow', async (t) => {
  const dir = await tempDir(t);
  const log = await openLog(dir, { config: { rotateBytes: 8_000 } });
  writeMany(log, 50);
  await log.flush();
  t.true((await logFiles(dir)).length > 3);
  const head = log.status().seq;
  t.deepEqual(await collect(tailAudit({ dir, follow: false, lines: 20 })), range(head - 19, head));
  t.deepEqual(await collect(tailAudit({ dir, follow: false, lines: 1000 })), range(1, head));
  t.deepEqual(await collect(tailAudit({ dir, follow: false, lines: 0 })), []);
  const checkpoints = await collect(
    tailAudit({ dir, follow: false, lines: 2, filter: (one) => one.kind === 'audit.checkpoint' }),
  );
  t.is(checkpoints.length, 2);
  await log.close();
});

test('tailAudit() follows across rotations when records are written, and ends at the signal', async (t) => {
  const dir = await tempDir(t);
  const log = await openLog(dir, { config: { rotateBytes: 8_000 } });
  writeMany(log, 3);
  await log.flush();
  const abort = new AbortController();
  const seen: number[] = [];
  const following = (async () => {
    for await (const record of tailAudit({ dir, follow: true, lines: 1, signal: abort.signal })) {
      seen.push(record.seq);
      if (seen.length % 10 === 1 && record.seq < 60) writeMany(log, 10);
      if (record.seq >= 60) abort.abort();
    }
  })();
  await following;
  t.deepEqual(seen, range(3, seen.at(-1) ?? 0));
  t.true((await logFiles(dir)).length > 3);
  await log.close();
});

test('tailAudit() waits for the first file when the directory is empty or missing', async (t) => {
  const dir = join(await tempDir(t), 'later');
  const first = collect(tailAudit({ dir, follow: true, lines: 10 }), 2);
  const log = await openLog(dir);
  writeMany(log, 2);
  await log.flush();
  t.deepEqual(await first, [1, 2]);
  await log.close();
});
