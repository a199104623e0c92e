import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { asciiLine, canonicalJson } from '../../../gateway/audit/canonical.ts';
import { createAuditSigner, generateAuditKey, parseHead, verifyAudit } from '../../../gateway/audit/index.ts';
import { readRecordLine, sha256Hex } from '../../../gateway/audit/record-line.ts';
import { checkpointMessage } from '../../../gateway/audit/signer.ts';
import { GatewayError } from '../../../gateway/errors.ts';
import { logFiles, openLog, signer, tempDir, writeMany } from './fixture.ts';

const name = 'audit-000000000001.jsonl';
const publicKeyPem = signer.publicKeyPem;

type Lines = string[];
const at = (lines: Lines, index: number): string => lines[index] ?? '';

/** Rewrites a line and its hash as somebody would who knows the format but not the key. */
function forge(line: string, change: (record: Record<string, unknown>) => void): string {
  const { hash: _hash, ...rest } = JSON.parse(line);
  change(rest);
  return asciiLine(canonicalJson({ ...rest, hash: sha256Hex(canonicalJson(rest)) }));
}

/** From `index` on, every record gets the right prev and hash again. */
function rechain(lines: Lines, index: number): Lines {
  const done = lines.slice(0, index);
  for (const line of lines.slice(index)) {
    const prev = done.length === 0 ? '0'.repeat(64) : JSON.parse(done.at(-1) ?? '').hash;
    done.push(forge(line, (record) => Object.assign(record, { prev, seq: done.length + 1 })));
  }
  return done;
}

const tampering: [what: string, change: (lines: Lines) => Lines, line: number, why: RegExp][] = [
  ['a field is edited', (lines) => lines.with(4, at(lines, 4).replace('allow', 'allox')), 5, /hash does not match/],
  [
    'a field is edited and its hash redone',
    (lines) =>
      lines.with(
        4,
        forge(at(lines, 4), (r) => Object.assign(r, { code: 'x' })),
      ),
    6,
    /prev is not/,
  ],
  ['a line is removed', (lines) => lines.toSpliced(4, 1), 5, /seq 5 expected/],
  ['the first line is removed', (lines) => lines.slice(1), 1, /file name/],
  ['two lines are swapped', (lines) => lines.with(4, at(lines, 5)).with(5, at(lines, 4)), 5, /seq 5 expected/],
  ['a line is inserted', (lines) => lines.toSpliced(4, 0, at(lines, 3)), 5, /seq 5 expected/],
  ['an empty line is inserted', (lines) => lines.toSpliced(4, 0, ''), 5, /not a JSON object/],
  ['a space is added', (lines) => lines.with(4, at(lines, 4).replace('{', '{ ')), 5, /canonical/],
  ['a key is doubled', (lines) => lines.with(4, at(lines, 4).replace('"v":1', '"v":1,"v":1')), 5, /canonical/],
  [
    'an escape is spelled another way',
    (lines) => lines.with(4, at(lines, 4).replace('"allowed"', '"\\u0061llowed"')),
    5,
    /canonical/,
  ],
  ['the carriage returns', (lines) => lines.map((line) => `${line}\r`), 1, /printable/],
  [
    'the version is new',
    (lines) =>
      lines.with(
        4,
        forge(at(lines, 4), (r) => Object.assign(r, { v: 2 })),
      ),
    5,
    /version/,
  ],
  ['the chain is redone from a record on', (lines) => rechain(lines.toSpliced(4, 1), 4), 10, /other records/],
  [
    'the chain and the checkpoint are redone without the key',
    (lines) => {
      const redone = rechain(lines.toSpliced(4, 1), 4);
      const prev = JSON.parse(at(redone, 8)).hash;
      return redone.with(
        9,
        forge(at(redone, 9), (r) => Object.assign(r.detail as object, { toSeq: 9, hash: prev })),
      );
    },
    10,
    /signature/,
  ],
];

async function written(dir: string): Promise<Lines> {
  const log = await openLog(dir);
  writeMany(log, 10);
  await log.close();
  return (await readFile(join(dir, name), 'latin1')).split('\n').slice(0, -1);
}

for (const [what, change, line, why] of tampering) {
  test(`verifyAudit() names line ${line} when ${what}`, async (t) => {
    const dir = await tempDir(t);
    const lines = await written(dir);
    t.true((await verifyAudit({ source: { dir }, publicKeyPem })).ok);
    await writeFile(join(dir, name), `${change(lines).join('\n')}\n`);
    const report = await verifyAudit({ source: { dir }, publicKeyPem });
    t.false(report.ok);
    t.like(report.firstBad, { file: name, line });
    t.regex(report.firstBad?.why ?? '', why);
  });
}

test('verifyAudit() finds it when any byte is flipped', async (t) => {
  const dir = await tempDir(t);
  const lines = await written(dir);
  const text = Buffer.from(`${lines.join('\n')}\n`);
  await fc.assert(
    fc.asyncProperty(fc.nat(text.length - 1), fc.integer({ min: 1, max: 255 }), async (index, mask) => {
      const copy = Buffer.from(text);
      copy[index] = (copy[index] ?? 0) ^ mask;
      await writeFile(join(dir, name), copy);
      const report = await verifyAudit({ source: { dir }, publicKeyPem });
      const line = text.subarray(0, index).toString('latin1').split('\n').length;
      // Without its newline the last line counts as still being written.
      if (index === text.length - 1) t.true(!report.ok || report.tornBytes > 0);
      else t.is(report.firstBad?.line, line);
    }),
    { numRuns: 150 },
  );
});

test('verifyAudit() notices a cut-off tail only when the expected head is given', async (t) => {
  const dir = await tempDir(t);
  const log = await openLog(dir);
  writeMany(log, 10);
  await log.close();
  const { seq, hash } = log.status();
  t.like(await verifyAudit({ source: { dir }, expectHead: { seq, hash } }), { ok: true, head: { seq: 11, hash } });
  const text = await readFile(join(dir, name), 'latin1');
  await writeFile(join(dir, name), `${text.split('\n').slice(0, 7).join('\n')}\n`);
  t.like(await verifyAudit({ source: { dir } }), { ok: true, signedUpTo: null, unsignedTail: 7 });
  const report = await verifyAudit({ source: { dir }, expectHead: { seq, hash } });
  t.like(report, { ok: false });
  t.regex(report.firstBad?.why ?? '', /expected head is missing/);
  t.like((await verifyAudit({ source: { dir }, expectHead: { seq: 3, hash: 'f'.repeat(64) } })).firstBad, { line: 3 });
});

test('parseHead() reads a head when it is seq:hash, and nothing else', (t) => {
  const hash = 'a'.repeat(64);
  t.deepEqual(parseHead(`12:${hash}`), { seq: 12, hash });
  for (const bad of [
    `0:${hash}`,
    `12:${hash}0`,
    `12:${'A'.repeat(64)}`,
    ` 12:${hash}`,
    `1e3:${hash}`,
    `99999999999999999:${hash}`,
    '',
  ]) {
    t.is(parseHead(bad), null, bad);
  }
});

test('verifyAudit() reads a log that is being written', async (t) => {
  const dir = await tempDir(t);
  const log = await openLog(dir);
  writeMany(log, 40);
  await log.flush();
  writeMany(log, 40);
  const report = await verifyAudit({ source: { dir }, publicKeyPem });
  t.like(report, { ok: true, signedUpTo: null, unsignedTail: report.records });
  t.true(report.records >= 40 && report.records <= 80);
  await log.close();
});

test('verifyAudit() reports a hand-over as bad when a file in the middle is missing or cut', async (t) => {
  const dir = await tempDir(t);
  const log = await openLog(dir, { config: { rotateBytes: 5_000 } });
  writeMany(log, 20);
  await log.close();
  const files = (await logFiles(dir)).map((file) => join(dir, file));
  t.true((await verifyAudit({ source: { files } })).ok);
  t.regex((await verifyAudit({ source: { files: files.toSpliced(1, 1) } })).firstBad?.why ?? '', /seq \d+ expected/);
  const second = files[1] ?? '';
  await writeFile(second, (await readFile(second)).subarray(0, -1));
  t.is((await verifyAudit({ source: { files } })).firstBad?.why, 'line is cut off');
});

test('verifyAudit() throws its own error when the key or the files cannot be read', async (t) => {
  const dir = await tempDir(t);
  await t.throwsAsync(verifyAudit({ source: { dir }, publicKeyPem: 'rubbish' }), { instanceOf: GatewayError });
  await t.throwsAsync(verifyAudit({ source: { files: [join(dir, 'missing')] } }), { instanceOf: GatewayError });
  await t.throwsAsync(verifyAudit({ source: { dir: join(dir, 'missing') } }), { instanceOf: GatewayError });
  t.like(await verifyAudit({ source: { dir } }), { ok: true, records: 0, head: null });
});

test('verifyAudit() refuses when another key signed, and when a line is longer than any record', async (t) => {
  const dir = await tempDir(t);
  await written(dir);
  const other = createAuditSigner(generateAuditKey());
  t.like((await verifyAudit({ source: { dir }, publicKeyPem: other.publicKeyPem })).firstBad, { line: 11 });
  await writeFile(join(dir, name), `${'x'.repeat(300 * 1024)}\n`);
  t.like((await verifyAudit({ source: { dir } })).firstBad, { line: 1 });
});

test('checkpointMessage() differs when any field differs', (t) => {
  const claim = { node: 'n', fromSeq: 1, toSeq: 2, hash: 'h', closing: false };
  const texts = [
    claim,
    { ...claim, node: 'm' },
    { ...claim, fromSeq: 2 },
    { ...claim, toSeq: 3 },
    { ...claim, hash: 'i' },
    { ...claim, closing: true },
  ];
  t.is(new Set(texts.map((one) => checkpointMessage(one).toString('latin1'))).size, texts.length);
});

test('readRecordLine() never throws when the line is arbitrary', (t) => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      t.false(readRecordLine(Buffer.from(text)).ok);
    }),
  );
});
