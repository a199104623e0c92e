import { chmodSync, chownSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createKeyFile } from '../../vault/index.ts';
import { isScryptCostInBounds, masterKey } from '../../vault/key-source.ts';
import { capability, root, testNeeding } from '../kit/require-system.ts';
import { codeOf, temporaryFolder } from './fixture.ts';

const fileModes = capability('file modes', process.geteuid === undefined ? 'this system has no file modes' : null);
const key = Buffer.from(Array.from({ length: 32 }, (_, at) => at * 7));

const texts: readonly [name: string, text: string, code: string | null][] = [
  ['base64', key.toString('base64'), null],
  ['base64 with a line end', `${key.toString('base64')}\r\n`, null],
  ['hex', key.toString('hex'), null],
  ['upper-case hex', key.toString('hex').toUpperCase(), null],
  ['31 bytes', key.subarray(1).toString('base64'), 'VAULT_KEY_MALFORMED'],
  ['33 bytes', Buffer.concat([key, Buffer.of(1)]).toString('base64'), 'VAULT_KEY_MALFORMED'],
  ['hex of 63 digits', key.toString('hex').slice(1), 'VAULT_KEY_MALFORMED'],
  ['base64url', key.toString('base64url'), 'VAULT_KEY_MALFORMED'],
  [
    'base64 with a stray character',
    `${key.toString('base64').slice(0, 20)}*${key.toString('base64').slice(20)}`,
    'VAULT_KEY_MALFORMED',
  ],
  ['a second line', `${key.toString('base64')}\n${key.toString('base64')}`, 'VAULT_KEY_MALFORMED'],
  ['nothing', '', 'VAULT_KEY_MALFORMED'],
  ['a long text', 'A'.repeat(10_000), 'VAULT_KEY_MALFORMED'],
];

for (const [name, text, code] of texts) {
  test(`masterKey() gives ${code ?? 'the key'} when the key file holds ${name}`, async (t) => {
    const path = join(temporaryFolder(t), 'key');
    writeFileSync(path, text, { mode: 0o600 });
    t.is(await codeOf(async () => t.deepEqual(await masterKey({ kind: 'file', path }, { kind: 'file' }), key)), code);
  });
}

for (const mode of [0o600, 0o400, 0o640, 0o604, 0o620, 0o610, 0o601]) {
  const code = (mode & 0o077) === 0 ? null : 'VAULT_KEY_EXPOSED';
  testNeeding(fileModes)(
    `masterKey() gives ${code ?? 'the key'} when the key file has mode 0${mode.toString(8)}`,
    async (t) => {
      const path = join(temporaryFolder(t), 'key');
      writeFileSync(path, key.toString('hex'));
      chmodSync(path, mode);
      t.is(await codeOf(() => masterKey({ kind: 'file', path }, { kind: 'file' })), code);
    },
  );
}

testNeeding(root())('masterKey() refuses a key file of another user', async (t) => {
  const path = join(temporaryFolder(t), 'key');
  writeFileSync(path, key.toString('hex'), { mode: 0o600 });
  chownSync(path, 12_345, 12_345);
  t.is(await codeOf(() => masterKey({ kind: 'file', path }, { kind: 'file' })), 'VAULT_KEY_EXPOSED');
});

test('masterKey() says when there is no key file, or a folder in its place', async (t) => {
  const folder = temporaryFolder(t);
  const open = (name: string) => codeOf(() => masterKey({ kind: 'file', path: join(folder, name) }, { kind: 'file' }));
  t.is(await open('none'), 'VAULT_SOURCE_UNAVAILABLE');
  mkdirSync(join(folder, 'folder'));
  t.is(await open('folder'), 'VAULT_KEY_MALFORMED');
});

test('masterKey() says when the passphrase cannot be asked for', async (t) => {
  const passphrase = () => Promise.reject(new Error('no terminal'));
  const derivation = { kind: 'scrypt', cost: { log2N: 14, r: 8, p: 1 }, salt: Buffer.alloc(16) } as const;
  t.is(await codeOf(() => masterKey({ kind: 'passphrase', passphrase }, derivation)), 'VAULT_SOURCE_UNAVAILABLE');
});

test('createKeyFile() writes a new key of mode 0600 and never over an old one', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'key');
  await createKeyFile(path);
  const before = readFileSync(path, 'utf8');
  t.regex(before, /^[A-Za-z0-9+/]{43}=\n$/);
  t.is(statSync(path).mode & 0o077, 0);
  t.is(await codeOf(() => createKeyFile(path)), 'VAULT_FILE_EXISTS');
  t.is(readFileSync(path, 'utf8'), before);
  await createKeyFile(join(folder, 'other'));
  t.not(readFileSync(join(folder, 'other'), 'utf8'), before);
  t.is(await codeOf(() => createKeyFile(join(folder, 'none', 'key'))), 'VAULT_WRITE_FAILED');
});

test('isScryptCostInBounds() takes what a header may ask for and refuses the next step', (t) => {
  const cases: readonly [log2N: number, r: number, p: number, isInBounds: boolean][] = [
    [14, 8, 1, true],
    [13, 8, 1, false],
    [17, 8, 1, true],
    [19, 8, 1, true],
    [20, 8, 1, false],
    [20, 4, 1, true],
    [21, 1, 1, false],
    [17, 0, 1, false],
    [14, 17, 1, false],
    [17, 8, 0, false],
    [17, 8, 5, false],
  ];
  for (const [log2N, r, p, isInBounds] of cases)
    t.is(isScryptCostInBounds({ log2N, r, p }), isInBounds, `${log2N} ${r} ${p}`);
});
