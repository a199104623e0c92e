/** Properties of what reads an audit folder back, whatever somebody left in it. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { HighWater } from '../../../gateway/audit/high-water.ts';
import { parseHead, verifyAudit } from '../../../gateway/audit/index.ts';
import { DirectoryLock } from '../../../gateway/audit/lock.ts';
import { recoverEnd } from '../../../gateway/audit/recover.ts';
import { GatewayError } from '../../../gateway/errors.ts';
import { scratchDirectory } from '../../kit/scratch.ts';

/** Pieces of lines and names as a log has them, and anything at all. */
const content = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc
    .array(
      fc.oneof(
        fc.constantFrom(
          '{"v":1,"seq":1',
          ',"hash":"',
          '"}\n',
          '\n',
          '{}\n',
          '[]\n',
          'null\n',
          '{"pid":',
          '1',
          '-1',
          '000000000000001\n',
        ),
        fc.constantFrom(
          '"started":"1"',
          '"bootId":null',
          '}',
          '{"pid":1e99}',
          '999999999999999\n',
          '{"v":1,"seq":2,"id":"x"}\n',
        ),
        fc.string({ maxLength: 8 }),
      ),
      { maxLength: 8 },
    )
    .map((parts) => Buffer.from(parts.join(''))),
);

/** True when `work` ends, or fails with an error of ours. */
async function endsWell(work: () => unknown): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    return error instanceof GatewayError && !error.message.includes('unexpected');
  }
}

test('verifyAudit() and recoverEnd() never throw anything but their own error on any file, and accept none by chance', async (t) => {
  const folder = await scratchDirectory();
  t.teardown(() => folder.remove());
  let nth = 0;
  await fc.assert(
    fc.asyncProperty(content, async (bytes) => {
      const dir = join(folder.path, String(nth++));
      mkdirSync(dir);
      writeFileSync(join(dir, 'audit-000000000001.jsonl'), bytes);
      const isVerified = await endsWell(async () => {
        const report = await verifyAudit({ source: { dir } });
        if (report.records > 0) throw new Error('no piece has a hash that fits');
      });
      return isVerified && (await endsWell(() => recoverEnd(dir)));
    }),
  );
  t.pass();
});

test('DirectoryLock and HighWater never throw anything but their own error on any file', async (t) => {
  const folder = await scratchDirectory();
  t.teardown(() => folder.remove());
  let nth = 0;
  await fc.assert(
    fc.asyncProperty(content, async (bytes) => {
      const dir = join(folder.path, String(nth++));
      mkdirSync(dir);
      writeFileSync(join(dir, 'audit.lock'), bytes);
      writeFileSync(join(dir, 'audit.high'), bytes);
      const isLockRead = await endsWell(() => new DirectoryLock(dir).release());
      const highWater = new HighWater(dir);
      highWater.close();
      return isLockRead && Number.isSafeInteger(highWater.value) && highWater.value >= 0;
    }),
  );
  t.pass();
});

test('parseHead() never throws and reads back exactly what a report prints', (t) => {
  const hash = fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 64, maxLength: 64 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 999_999_999 }), hash, (seq, digest) => {
      const head = parseHead(`${seq}:${digest}`);
      return head?.seq === seq && head.hash === digest;
    }),
  );
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 90 }), (text) => {
      const head = parseHead(text);
      return head === null || Number.isSafeInteger(head.seq);
    }),
  );
  t.pass();
});
