import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { type AuditFile, openAuditFile } from '../../../gateway/audit/files.ts';
import { createAuditSigner, generateAuditKey, verifyAudit } from '../../../gateway/audit/index.ts';
import { eventHeadroom } from '../../../gateway/audit/log.ts';
import { GatewayError } from '../../../gateway/errors.ts';
import { logFiles, openLog, readAll, record, signer, tempDir, writeMany } from './fixture.ts';

test('AuditLog writes a chain that verifies when requests and events are mixed', async (t) => {
  const dir = await tempDir(t);
  const log = await openLog(dir);
  log.event({ kind: 'admin.start', actor: 'root', detail: { version: '1.2.3' } });
  t.true(writeMany(log, 300));
  log.event({
    kind: 'policy.reload',
    policy: { name: 'p', digest: 'x', generation: 2 },
    detail: { note: 'gr\u00fcn \u2028' },
  });
  t.is(log.status().seq, 302);
  await log.close();
  await log.close();
  const report = await verifyAudit({ source: { dir }, publicKeyPem: signer.publicKeyPem });
  t.like(report, {
    ok: true,
    records: 303,
    files: 1,
    checkpoints: 1,
    gaps: [],
    firstBad: null,
    signedUpTo: 302,
    unsignedTail: 0,
  });
  t.like(report, { keys: 'trusted', tornBytes: 0, firstSeq: 1 });
  const all = await readAll(dir);
  t.like(all[0], { seq: 1, v: 1, node: 'n1', kind: 'admin.start', actor: 'root', prev: '0'.repeat(64) });
  t.like(all[301], { kind: 'policy.reload', detail: { note: 'gr\u00fcn \u2028' } });
});

test('AuditLog keeps directory and files for its owner when it creates them', async (t) => {
  const dir = join(await tempDir(t), 'deep', 'audit');
  const log = await openLog(dir);
  writeMany(log, 1);
  await log.flush();
  t.is((await stat(dir)).mode & 0o777, 0o700);
  for (const name of await readdir(dir)) t.is((await stat(join(dir, name))).mode & 0o777, 0o600, name);
  await log.close();
});

test('AuditLog carries the chain over without a gap when it is closed and opened again', async (t) => {
  const dir = await tempDir(t);
  for (let round = 0; round < 3; round++) {
    const log = await openLog(dir);
    writeMany(log, 5);
    await log.close();
  }
  await (await openLog(dir)).close();
  t.like(await verifyAudit({ source: { dir } }), { ok: true, records: 18, checkpoints: 3, gaps: [], keys: 'beside' });
});

test('AuditLog rotates with a checkpoint last when the file is full', async (t) => {
  const dir = await tempDir(t);
  const log = await openLog(dir, { config: { rotateBytes: 20_000 } });
  writeMany(log, 200);
  await log.close();
  const files = await logFiles(dir);
  t.true(files.length > 5);
  for (const [index, name] of files.entries()) {
    const lines = (await readFile(join(dir, name), 'latin1')).split('\n').slice(0, -1);
    t.is(Number(name.slice(6, 18)), JSON.parse(lines[0] ?? '').seq);
    t.is(JSON.parse(lines.at(-1) ?? '').kind, 'audit.checkpoint', `file ${index}`);
  }
  const report = await verifyAudit({ source: { dir }, publicKeyPem: signer.publicKeyPem });
  t.like(report, { ok: true, files: files.length, unsignedTail: 0 });
  const moved = await verifyAudit({
    source: {
      files: files
        .slice(2)
        .reverse()
        .map((name) => join(dir, name)),
    },
  });
  t.like(moved, { ok: true, files: files.length - 2, keys: 'none' });
  t.true((moved.firstSeq ?? 0) > 1);
});

test('AuditLog keeps both public keys when the key changes, and both generations verify', async (t) => {
  const dir = await tempDir(t);
  const next = createAuditSigner(generateAuditKey());
  for (const key of [signer, next, next]) {
    const log = await openLog(dir, { signer: key });
    writeMany(log, 2);
    await log.close();
  }
  t.like(await verifyAudit({ source: { dir } }), { ok: true, checkpoints: 3 });
  const trusted = await verifyAudit({ source: { dir }, publicKeyPem: signer.publicKeyPem });
  t.like(trusted.firstBad, { seq: 6, why: 'signature does not verify with the public key' });
});

test('reserve() is false when the queue is full of reservations, and true again after one is released', async (t) => {
  const log = await openLog(await tempDir(t), { config: { maxQueued: 3 } });
  t.deepEqual([log.reserve(), log.reserve(), log.reserve(), log.reserve()], [true, true, true, false]);
  log.release();
  t.true(log.reserve());
  t.is(log.status().queued, 3);
  for (let i = 0; i < 3; i++) log.request(record());
  t.false(log.reserve());
  await log.flush();
  t.true(log.reserve());
  log.release();
  await log.close();
  t.false(log.reserve());
});

/** Files whose writes fail with `code` while `broken`. */
function failingFiles(): {
  broken: string | null;
  shortWrites: boolean;
  failSync: boolean;
  open: (path: string) => Promise<AuditFile>;
} {
  const seam = {
    broken: null as string | null,
    shortWrites: false,
    failSync: false,
    open: async (path: string): Promise<AuditFile> => {
      const file = await openAuditFile(path);
      return {
        ...file,
        write: async (bytes, offset, length, position) => {
          const error = seam.broken;
          // A full disk takes a part before it refuses.
          if (error !== null) await file.write(bytes, offset, Math.min(length, 100), position);
          if (error !== null) throw Object.assign(new Error(error), { code: error });
          return file.write(bytes, offset, seam.shortWrites ? Math.ceil(length / 2) : length, position);
        },
        sync: async () => {
          if (seam.failSync) throw Object.assign(new Error('EIO'), { code: 'EIO' });
          return file.sync();
        },
      };
    },
  };
  return seam;
}

test('AuditLog refuses while the disk is full, loses no request, and tells dropped events after it recovers', async (t) => {
  const dir = await tempDir(t);
  const files = failingFiles();
  const log = await openLog(dir, { openFile: files.open, config: { maxQueued: 100 } });
  t.true(writeMany(log, 10));
  await log.flush();
  files.broken = 'ENOSPC';
  t.true(writeMany(log, 20));
  const error = await t.throwsAsync(log.flush(), { instanceOf: GatewayError });
  t.is(error?.code, 'GATEWAY_AUDIT_FAILED');
  t.like(log.status(), { healthy: false, failure: 'ENOSPC', queued: 20 });
  t.false(log.reserve());
  for (let i = 0; i < 100 + eventHeadroom; i++) log.event({ kind: 'vault.change' });
  t.is(log.status().droppedSinceStart, 20);
  files.broken = null;
  files.shortWrites = true;
  await log.flush();
  await log.flush();
  t.true(log.status().healthy);
  t.true(log.reserve());
  log.release();
  await log.close();
  const report = await verifyAudit({ source: { dir } });
  t.like(report, { ok: true });
  t.like(report.gaps[0], { reason: 'records dropped', dropped: 20 });
  const all = await readAll(dir);
  t.is(all.filter((one) => one.kind === 'http.request').length, 30);
});

test('close() rejects and the next opening records the gap when the disk refuses to the end', async (t) => {
  const dir = await tempDir(t);
  const files = failingFiles();
  const log = await openLog(dir, { openFile: files.open });
  writeMany(log, 10);
  await log.flush();
  files.broken = 'EIO';
  writeMany(log, 30);
  await t.throwsAsync(log.close(), { instanceOf: GatewayError });
  await t.throwsAsync(log.close(), { instanceOf: GatewayError });
  const again = await openLog(dir);
  await again.close();
  const report = await verifyAudit({ source: { dir } });
  t.true(report.ok);
  t.is(report.gaps[0]?.reason, 'unclean shutdown');
  t.true((report.gaps[0]?.atMost ?? 0) >= 30);
});

test('AuditLog is not durable before the sync succeeded when fsync is always', async (t) => {
  const files = failingFiles();
  const log = await openLog(await tempDir(t), { openFile: files.open, config: { fsync: 'always' } });
  files.failSync = true;
  writeMany(log, 3);
  await t.throwsAsync(log.flush(), { instanceOf: GatewayError });
  t.like(log.status(), { healthy: false, queued: 3 });
  files.failSync = false;
  await log.flush();
  t.like(log.status(), { healthy: true, queued: 0 });
  await log.close();
});

test('AuditLog.open() refuses when another log of this process or a living process holds the directory', async (t) => {
  const dir = await tempDir(t);
  const log = await openLog(dir);
  const error = await t.throwsAsync(openLog(dir), { instanceOf: GatewayError });
  t.is(error?.code, 'GATEWAY_AUDIT_LOCKED');
  t.true(writeMany(log, 1));
  await log.close();
  await (await openLog(dir)).close();
});

test('AuditLog.open() takes the lock over when its holder is dead, was another process with that pid, or ran before the boot', async (t) => {
  const child = spawn(process.execPath, ['-e', '']);
  await once(child, 'exit');
  const holders = [
    JSON.stringify({ pid: child.pid, started: '1', bootId: (await bootId()) ?? null }),
    JSON.stringify({ pid: process.pid, started: 'before', bootId: (await bootId()) ?? null }),
    JSON.stringify({ pid: process.pid, started: null, bootId: 'before' }),
    '',
  ];
  for (const holder of holders) {
    const dir = await tempDir(t);
    await writeFile(join(dir, 'audit.lock'), holder);
    const log = await openLog(dir);
    writeMany(log, 1);
    await log.close();
    t.like(await verifyAudit({ source: { dir } }), { ok: true });
    t.deepEqual((await readdir(dir)).sort(), ['audit-000000000001.jsonl', 'audit.high', 'audit.pub']);
  }
});

test('AuditLog stops for good when another process has taken its lock file', async (t) => {
  const dir = await tempDir(t);
  const log = await openLog(dir);
  t.true(writeMany(log, 10));
  await log.flush();
  await writeFile(join(dir, 'other'), '{}');
  await rename(join(dir, 'other'), join(dir, 'audit.lock'));
  t.false(writeMany(log, 300));
  t.like(log.status(), { healthy: false, failure: 'lock lost' });
  await t.throwsAsync(log.close(), { instanceOf: GatewayError });
  t.true((await readdir(dir)).includes('audit.lock'));
});

test('request() counts and tells instead of throwing when a record is not what its type says', async (t) => {
  const dir = await tempDir(t);
  const log = await openLog(dir);
  t.true(log.reserve());
  // Lies to the type on purpose.
  t.notThrows(() => log.request({ kind: 'http.request' } as Parameters<typeof log.request>[0]));
  await log.close();
  t.notThrows(() => log.request(record()));
  t.notThrows(() => log.event({ kind: 'admin.stop' }));
  const report = await verifyAudit({ source: { dir } });
  t.like(report, { ok: true });
  t.like(report.gaps[0], { reason: 'records dropped', dropped: 1 });
});

test('AuditLog goes on without the signature, and says so, when the signer fails', async (t) => {
  const dir = await tempDir(t);
  const broken = {
    ...signer,
    sign: () => {
      throw new Error('no key');
    },
  };
  const log = await openLog(dir, { signer: broken, config: { rotateBytes: 5_000 } });
  t.true(writeMany(log, 20));
  await log.close();
  const report = await verifyAudit({ source: { dir } });
  t.like(report, { ok: true, signedUpTo: null, checkpoints: 0 });
  t.is(report.gaps[0]?.reason, 'checkpoint not signed');
});

test('AuditLog redacts known secrets when they come in requests and events', async (t) => {
  const dir = await tempDir(t);
  const log = await openLog(dir, { redact: (text) => text.replaceAll('hunter2', '[redacted:pw]') });
  writeMany(log, 1, () => ({ reason: 'saw hunter2' }));
  log.event({ kind: 'selftest', reason: 'hunter2', detail: { deep: [{ hunter2: 'a hunter2 b' }] } });
  await log.close();
  const text = await readFile(join(dir, 'audit-000000000001.jsonl'), 'latin1');
  t.false(text.includes('hunter2'));
  t.is(text.split('[redacted:pw]').length - 1, 4);
});

async function bootId(): Promise<string | undefined> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'latin1').catch(() => undefined))?.trim();
}
