/** Refusals that found the queue full leave a number behind. */
import test from 'ava';
import { verifyAudit } from '../../../gateway/audit/index.ts';
import { openLog, record, tempDir } from './fixture.ts';

test('missed() counts a refusal that found no place, and tells at the end at the latest', async (t) => {
  const dir = await tempDir(t);
  const log = await openLog(dir, { config: { maxQueued: 1 } });
  t.true(log.reserve());
  t.false(log.reserve());
  log.missed();
  t.is(log.status().droppedSinceStart, 1);
  log.request(record());
  await log.close();
  t.like((await verifyAudit({ source: { dir } })).gaps[0], { reason: 'records dropped', dropped: 1 });
});
