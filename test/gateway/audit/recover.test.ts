import { createHash } from 'node:crypto';
import { copyFile, mkdir, readdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { verifyAudit } from '../../../gateway/audit/index.ts';
import { GatewayError } from '../../../gateway/errors.ts';
import { logFiles, openLog, readAll, signer, tempDir, writeMany } from './fixture.ts';

const name = 'audit-000000000001.jsonl';

test('AuditLog.open() puts the tail aside, records it and goes on when the last record is torn at any length', async (t) => {
  const dir = await tempDir(t);
  const log = await openLog(dir);
  writeMany(log, 3, () => ({ sandbox: null, policy: null, upstream: null, response: null, credential: null }));
  await log.flush();
  const text = await readFile(join(dir, name));
  await log.close();
  const lastStart = text.lastIndexOf(10, -2) + 1;
  const last = text.subarray(lastStart);
  // Every length for the first and last bytes, every seventh between: the middle of a record has no special places.
  const lengths = [...last.keys()].filter(
    (length) => length > 0 && (length < 24 || length > last.length - 24 || length % 7 === 0),
  );
  for (const length of lengths) {
    const torn = join(dir, `torn-${length}`);
    await mkdir(torn);
    await copyFile(join(dir, 'audit.high'), join(torn, 'audit.high'));
    await writeFile(join(torn, name), text.subarray(0, lastStart + length));
    await (await openLog(torn)).close();
    const report = await verifyAudit({ source: { dir: torn }, publicKeyPem: signer.publicKeyPem });
    t.like(report, { ok: true, unsignedTail: 0 }, `length ${length}`);
    const gap = (await readAll(torn)).find((one) => one.kind === 'audit.gap');
    const bytes = last.subarray(0, length);
    t.like(gap, { seq: 3, reason: 'unclean shutdown' });
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    t.like(gap?.detail, { lastSeq: 2, torn: [{ bytes: length, lines: 0, sha256 }] });
    const aside = (await readdir(torn)).find((file) => file.startsWith('audit-torn-')) ?? '';
    t.deepEqual(await readFile(join(torn, aside)), bytes);
  }
});

const tails: [name: string, spoil: (text: Buffer) => Buffer, lastSeq: number][] = [
  ['zeros after the last line', (text) => Buffer.concat([text, Buffer.alloc(4096)]), 6],
  ['a complete line of rubbish', (text) => Buffer.concat([text, Buffer.from('\u0000rubbish\n{"v":1}\n')]), 6],
  ['the last record with a flipped byte', (text) => flip(text, text.length - 20), 5],
  ['nothing but half a line', (text) => text.subarray(0, 100), 0],
  ['no byte at all', () => Buffer.alloc(0), 0],
];

for (const [what, spoil, lastSeq] of tails) {
  test(`AuditLog.open() goes on behind the last good record when the file ends with ${what}`, async (t) => {
    const dir = await tempDir(t);
    const log = await openLog(dir);
    writeMany(log, 5);
    await log.close();
    const text = await readFile(join(dir, name));
    await writeFile(join(dir, name), spoil(text));
    await (await openLog(dir)).close();
    const report = await verifyAudit({ source: { dir }, publicKeyPem: signer.publicKeyPem });
    t.like(report, { ok: true });
    t.is(report.gaps.length, 1);
    t.is(report.gaps[0]?.atMost, 6 - lastSeq);
  });
}

test('AuditLog.open() goes back to the file before when a new file was only begun', async (t) => {
  const dir = await tempDir(t);
  const log = await openLog(dir, { config: { rotateBytes: 5_000 } });
  writeMany(log, 10);
  await log.close();
  const files = await logFiles(dir);
  const newest = join(dir, files.at(-1) ?? '');
  await truncate(newest, 57);
  await (await openLog(dir)).close();
  const report = await verifyAudit({ source: { dir } });
  t.like(report, { ok: true });
  t.is(report.gaps.length, 1);
});

test('AuditLog.open() says how many may be missing when records were cut off cleanly, and gives no seq out twice when all are gone', async (t) => {
  const dir = await tempDir(t);
  const log = await openLog(dir);
  writeMany(log, 50);
  await log.close();
  const text = await readFile(join(dir, name), 'latin1');
  await writeFile(join(dir, name), `${text.split('\n').slice(0, 20).join('\n')}\n`);
  const cut = await openLog(dir);
  await cut.close();
  t.is((await verifyAudit({ source: { dir } })).gaps[0]?.atMost, 31);
  for (const file of await logFiles(dir)) await truncate(join(dir, file), 0);
  const empty = await openLog(dir);
  await empty.close();
  const report = await verifyAudit({ source: { dir } });
  t.like(report, { ok: true });
  t.true((report.firstSeq ?? 0) > 20);
});

test('AuditLog.open() refuses when the end of a large file holds no record', async (t) => {
  const dir = await tempDir(t);
  const log = await openLog(dir);
  writeMany(log, 2);
  await log.close();
  await truncate(join(dir, name), 65 * 1024 * 1024);
  const error = await t.throwsAsync(openLog(dir), { instanceOf: GatewayError });
  t.is(error?.code, 'GATEWAY_AUDIT_FAILED');
  t.false((await readdir(dir)).includes('audit.lock'));
});

function flip(text: Buffer, at: number): Buffer {
  const copy = Buffer.from(text);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}
