import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { type Contents, openContents, type StoredRecord, sealContents } from '../../vault/contents.ts';
import { Vault, VaultError } from '../../vault/index.ts';
import { encodeHeader, encodeSealedFile, parseSealedFile, type SealedFile } from '../../vault/sealed-file.ts';
import { openSodium } from '../../vault/sodium.ts';
import { deriveVaultKeys } from '../../vault/vault-keys.ts';
import { codeOf, countingRandom, keyFile, temporaryFolder } from './fixture.ts';

const refusals = new Set(['VAULT_FILE_CORRUPT', 'VAULT_KEY_WRONG']);

/** Two secrets, one of them with two versions, and one record of another purpose. */
async function example(t: ExecutionContext) {
  const folder = temporaryFolder(t);
  const options = { file: join(folder, 'v'), key: keyFile(folder) };
  const vault = await Vault.create({ ...options, random: countingRandom() });
  await vault.set('alpha', Buffer.from('alpha one'));
  await vault.set('alpha', Buffer.from('alpha two'));
  await vault.set('beta', Buffer.from('beta one!'));
  await vault.seal('audit-signing', 'alpha', Buffer.from('not alpha'));
  vault.close();
  const keys = deriveVaultKeys(await openSodium(), Buffer.alloc(32, 7));
  const bytes = readFileSync(options.file);
  const file = parseSealedFile(bytes);
  const openWith = async (changed: Buffer) => {
    writeFileSync(options.file, changed, { mode: 0o600 });
    return codeOf(async () => (await Vault.open(options)).close());
  };
  return { options, keys, bytes, file, contents: openContents(file, keys), openWith };
}

/** The file with another checksum that holds: what somebody without the key can make. */
function withChecksum(bytes: Buffer): Buffer {
  const body = bytes.subarray(0, -32);
  return Buffer.concat([body, createHash('sha256').update(body).digest()]);
}

test('Vault.open() refuses a file with any one bit turned, and says that it is damaged', async (t) => {
  const { bytes, keys, openWith } = await example(t);
  for (let at = 0; at < bytes.length; at += 1) {
    const changed = flipped(bytes, at, at % 8);
    t.is(
      codeOfSync(() => openContents(parseSealedFile(changed), keys)),
      'VAULT_FILE_CORRUPT',
      `byte ${at}`,
    );
  }
  t.is(await openWith(flipped(bytes, 60, 0)), 'VAULT_FILE_CORRUPT');
  t.is(await openWith(bytes), null);
});

test('Vault.open() refuses a file with any one bit turned and the checksum made again', async (t) => {
  const { bytes, keys, openWith } = await example(t);
  const codes = new Set<string | null>();
  for (let at = 0; at < bytes.length - 32; at += 1) {
    for (const bit of [0, 7]) {
      const changed = withChecksum(flipped(bytes, at, bit));
      const code = codeOfSync(() => {
        const file = parseSealedFile(changed);
        if (!keys.opens(file.header.keyId)) throw new VaultError('VAULT_KEY_WRONG', 'another key');
        openContents(file, keys);
      });
      t.true(code !== null && refusals.has(code), `byte ${at} bit ${bit}: ${code}`);
      codes.add(code);
    }
  }
  t.deepEqual(codes, refusals);
  t.is(await openWith(withChecksum(flipped(bytes, 40, 0))), 'VAULT_KEY_WRONG');
  t.is(await openWith(withChecksum(flipped(bytes, 90, 0))), 'VAULT_FILE_CORRUPT');
});

test('parseSealedFile() never throws anything but its own error', async (t) => {
  const { bytes } = await example(t);
  const edits = fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { maxLength: 6 });
  const changed = edits.map((list) => {
    const copy = Buffer.from(bytes);
    for (const [at, value] of list) copy[at] = value;
    return withChecksum(copy);
  });
  const garbage = fc
    .uint8Array({ maxLength: 400 })
    .map((tail) => withChecksum(Buffer.concat([bytes.subarray(0, 60), tail, Buffer.alloc(32)])));
  const anything = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array));
  fc.assert(
    fc.property(fc.oneof(changed, garbage, anything), (candidate) => {
      try {
        // What is accepted has one encoding.
        return encodeSealedFile(parseSealedFile(candidate)).equals(candidate);
      } catch (error) {
        return error instanceof VaultError && error.code === 'VAULT_FILE_CORRUPT';
      }
    }),
    { numRuns: 500 },
  );
  t.pass();
});

test('Vault.open() refuses a file cut off anywhere', async (t) => {
  const { bytes, openWith } = await example(t);
  for (let length = 0; length < bytes.length; length += 1) {
    t.is(
      codeOfSync(() => parseSealedFile(bytes.subarray(0, length))),
      'VAULT_FILE_CORRUPT',
      `length ${length}`,
    );
  }
  t.is(await openWith(Buffer.alloc(0)), 'VAULT_FILE_CORRUPT');
  t.is(await openWith(bytes.subarray(0, -1)), 'VAULT_FILE_CORRUPT');
  t.is(await openWith(Buffer.concat([bytes, Buffer.of(0)])), 'VAULT_FILE_CORRUPT');
});

const rearrangements: readonly [name: string, change: (file: SealedFile) => SealedFile][] = [
  ['two records swapped', (file) => ({ ...file, records: swapped(file.records, 0, 2) })],
  ['two versions swapped', (file) => ({ ...file, records: swapped(file.records, 0, 1) })],
  ['a record twice', (file) => ({ ...file, records: [...file.records, ...file.records.slice(0, 1)] })],
  ['a record left out', (file) => ({ ...file, records: file.records.slice(1) })],
  [
    'the newest version rolled back to the one before',
    (file) => ({ ...file, records: file.records.map((part, at) => (at === 1 ? (file.records[0] ?? part) : part)) }),
  ],
  ['no records', (file) => ({ ...file, records: [] })],
];

for (const [name, change] of rearrangements) {
  test(`Vault.open() refuses a file with ${name}`, async (t) => {
    const { file, openWith } = await example(t);
    t.is(await openWith(encodeSealedFile(change(file))), 'VAULT_FILE_CORRUPT');
    t.is(await openWith(encodeSealedFile(file)), null);
  });
}

test('Vault.open() refuses a record of an older file in a newer one', async (t) => {
  const folder = temporaryFolder(t);
  const options = { file: join(folder, 'v'), key: keyFile(folder) };
  const vault = await Vault.create(options);
  await vault.seal('interception-ca', 'current', Buffer.from('old'));
  const old = parseSealedFile(readFileSync(options.file));
  await vault.seal('interception-ca', 'current', Buffer.from('new'));
  vault.close();
  const current = parseSealedFile(readFileSync(options.file));
  writeFileSync(options.file, encodeSealedFile({ ...current, records: old.records }));
  t.is(await codeOf(() => Vault.open(options)), 'VAULT_FILE_CORRUPT');
});

const relabels: readonly [name: string, change: (record: StoredRecord) => StoredRecord][] = [
  ['name', (record) => ({ ...record, name: 'gamma' })],
  ['version', (record) => ({ ...record, version: record.version + 5 })],
  ['purpose', (record) => ({ ...record, purpose: 'placeholders' })],
];

for (const [field, change] of relabels) {
  test(`a record does not open under another ${field}, even below a manifest that says so`, async (t) => {
    const { keys, file, contents } = await example(t);
    const relabelled: Contents = {
      generation: 9,
      records: contents.records.map((record, at) => (at === 2 ? change(record) : record)),
    };
    const reopened = openContents(parseSealedFile(sealContents(relabelled, file.header, keys, countingRandom())), keys);
    const header = encodeHeader(file.header);
    for (const [at, record] of reopened.records.entries()) {
      t.is(
        codeOfSync(() => keys.open(record, record.part, header)),
        at === 2 ? 'VAULT_FILE_CORRUPT' : null,
      );
    }
  });
}

test('a record does not open under a header of another derivation or key id', async (t) => {
  const { keys, file, contents } = await example(t);
  const record = contents.records[0];
  if (record === undefined) return t.fail();
  const scrypt = { kind: 'scrypt', cost: { log2N: 14, r: 8, p: 1 }, salt: Buffer.alloc(16) } as const;
  const headers = [
    { ...file.header, derivation: scrypt },
    { ...file.header, keyId: Buffer.alloc(16) },
  ];
  for (const header of headers)
    t.is(
      codeOfSync(() => keys.open(record, record.part, encodeHeader(header))),
      'VAULT_FILE_CORRUPT',
    );
  t.is(keys.open(record, record.part, encodeHeader(file.header)).toString(), 'alpha one');
});

test('parseSealedFile() refuses a scrypt cost that would take the machine down', async (t) => {
  const { file } = await example(t);
  for (const log2N of [0, 13, 21, 40, 255]) {
    const derivation = { kind: 'scrypt', cost: { log2N, r: 8, p: 1 }, salt: Buffer.alloc(16) } as const;
    const bytes = encodeSealedFile({ ...file, header: { ...file.header, derivation } });
    t.is(
      codeOfSync(() => parseSealedFile(bytes)),
      'VAULT_FILE_CORRUPT',
      `2^${log2N}`,
    );
  }
});

test('a sealed file shows neither values nor names', async (t) => {
  const { bytes } = await example(t);
  for (const text of ['alpha', 'beta', 'audit-signing']) t.false(bytes.includes(text));
});

function flipped(bytes: Buffer, at: number, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ (1 << bit);
  return copy;
}

function swapped<T>(list: readonly T[], a: number, b: number): T[] {
  return list.map((item, at) => (at === a ? (list[b] ?? item) : at === b ? (list[a] ?? item) : item));
}

function codeOfSync(work: () => unknown): string | null {
  try {
    work();
    return null;
  } catch (error) {
    if (error instanceof VaultError) return error.code;
    throw error;
  }
}
