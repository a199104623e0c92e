import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { verifyAudit } from '../../../gateway/audit/index.ts';
import { keyPem, openLog, readAll, signer, tempDir } from './fixture.ts';

const writer = fileURLToPath(new URL('crash-writer.js', import.meta.url));

/** Kills the writer at its `after`th message. Gives the highest seq it told of. */
async function crash(dir: string, after: number): Promise<number> {
  const child = fork(writer, [dir, keyPem], { execArgv: [] });
  let told = 0;
  let messages = 0;
  child.on('message', (seq) => {
    told = Number(seq);
    messages++;
    if (messages === after) child.kill('SIGKILL');
  });
  await once(child, 'exit');
  return told;
}

test('AuditLog verifies and bounds its loss when its process is killed under load again and again', async (t) => {
  const dir = await tempDir(t);
  for (let round = 0; round < 15; round++) {
    const told = await crash(dir, 1 + ((round * 37) % 90));
    const log = await openLog(dir);
    await log.close();
    const report = await verifyAudit({ source: { dir }, publicKeyPem: signer.publicKeyPem });
    t.like(report, { ok: true, firstBad: null, unsignedTail: 0 }, `round ${round}`);
    const gap = (await readAll(dir)).findLast((one) => one.kind === 'audit.gap');
    // The writer's own record, as its schema says.
    const { atMost, lastSeq } = (gap ?? { detail: {} }).detail as { atMost: number; lastSeq: number };
    t.true(told - lastSeq <= atMost, `round ${round}: told ${told}, on disk ${lastSeq}, at most ${atMost} lost`);
    t.is(report.gaps.length, round + 1);
  }
});
