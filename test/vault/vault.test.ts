import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { MAX_VALUE_BYTES, MAX_VERSIONS, Vault } from '../../vault/index.ts';
import { cheapScrypt, codeOf, fixedNow, keyFile, temporaryFolder } from './fixture.ts';

async function fresh(t: Parameters<typeof temporaryFolder>[0]) {
  const folder = temporaryFolder(t);
  const options = { file: join(folder, 'vault.sealed'), key: keyFile(folder) };
  const vault = await Vault.create(options);
  t.teardown(() => vault.close());
  return { folder, options, vault };
}

test('Vault keeps a secret over a restart', async (t) => {
  const { options, vault } = await fresh(t);
  await vault.set('github/acme', Buffer.from('ghp_example'), 'alice');
  vault.close();
  const again = await Vault.open(options);
  t.teardown(() => again.close());
  t.is(again.get('github/acme').toString(), 'ghp_example');
  t.is(again.info('github/acme').updatedBy, 'alice');
});

test('Vault.set() adds a version and keeps the old ones up to the bound', async (t) => {
  const { vault } = await fresh(t);
  for (let version = 1; version <= MAX_VERSIONS + 2; version += 1)
    await vault.set('a', Buffer.from(`value ${version}`));
  t.is(vault.get('a').toString(), `value ${MAX_VERSIONS + 2}`);
  t.is(vault.getVersion('a', 3).toString(), 'value 3');
  t.is(await codeOf(() => vault.getVersion('a', 2)), 'VAULT_SECRET_MISSING');
  t.is(vault.info('a').versions, MAX_VERSIONS);
});

test('Vault.info() tells everything but the value', async (t) => {
  const folder = temporaryFolder(t);
  let now = fixedNow;
  const vault = await Vault.create({ file: join(folder, 'v'), key: keyFile(folder), now: () => now });
  t.teardown(() => vault.close());
  await vault.set('a', Buffer.from('one'));
  now += 1_000;
  const info = await vault.set('a', Buffer.from('three'));
  t.deepEqual(info, {
    name: 'a',
    version: 2,
    versions: 2,
    createdAt: '2026-01-02T03:04:05.000Z',
    updatedAt: '2026-01-02T03:04:06.000Z',
    sizeBytes: 5,
  });
  t.deepEqual(vault.list(), [info]);
});

test('Vault.get() gives a copy that its caller may wipe', async (t) => {
  const { vault } = await fresh(t);
  await vault.set('a', Buffer.from('value'));
  vault.get('a').fill(0);
  t.is(vault.get('a').toString(), 'value');
});

test('Vault.remove() forgets every version', async (t) => {
  const { options, vault } = await fresh(t);
  await vault.set('a', Buffer.from('one'));
  await vault.set('a', Buffer.from('two'));
  await vault.remove('a');
  t.deepEqual(vault.list(), []);
  t.is(await codeOf(() => vault.getVersion('a', 1)), 'VAULT_SECRET_MISSING');
  t.is(await codeOf(() => vault.remove('a')), 'VAULT_SECRET_MISSING');
  const again = await Vault.open(options);
  t.teardown(() => again.close());
  t.deepEqual(again.list(), []);
});

test('Vault.unseal() opens under the purpose that sealed and under no other', async (t) => {
  const { vault } = await fresh(t);
  await vault.seal('audit-signing', 'current', Buffer.from('first'));
  await vault.seal('audit-signing', 'current', Buffer.from('second'));
  t.is(vault.unseal('audit-signing', 'current').toString(), 'second');
  t.is(await codeOf(() => vault.unseal('interception-ca', 'current')), 'VAULT_SECRET_MISSING');
  t.is(await codeOf(() => vault.get('current')), 'VAULT_SECRET_MISSING');
  t.deepEqual(vault.list(), []);
});

test('Vault.obtain() makes bytes once for all who ask', async (t) => {
  const { options, vault } = await fresh(t);
  const other = await Vault.open(options);
  t.teardown(() => other.close());
  let made = 0;
  const make = () => {
    made += 1;
    return Buffer.from(`made ${made}`);
  };
  const ask = (one: Vault) => one.obtain('placeholders', 'current', make);
  const found = await Promise.all([ask(vault), ask(other), ask(vault)]);
  t.deepEqual(
    found.map((bytes) => bytes.toString()),
    ['made 1', 'made 1', 'made 1'],
  );
  t.is((await ask(other)).toString(), 'made 1');
  t.is(made, 1);
  t.is(await codeOf(() => vault.obtain('placeholders', 'empty', () => Buffer.alloc(0))), 'VAULT_SECRET_MALFORMED');
});

const names: readonly [name: string, code: string | null][] = [
  ['a', null],
  ['A.b_c-d/e', null],
  ['x'.repeat(128), null],
  ['x'.repeat(129), 'VAULT_NAME_MALFORMED'],
  ['', 'VAULT_NAME_MALFORMED'],
  ['a..b', 'VAULT_NAME_MALFORMED'],
  ['a@1', 'VAULT_NAME_MALFORMED'],
  ['a b', 'VAULT_NAME_MALFORMED'],
  ['a\n', 'VAULT_NAME_MALFORMED'],
  ['ä', 'VAULT_NAME_MALFORMED'],
];

for (const [name, code] of names) {
  test(`Vault.set() gives ${code ?? 'no error'} for the name ${JSON.stringify(name.slice(0, 12))} of ${name.length}`, async (t) => {
    const { vault } = await fresh(t);
    t.is(await codeOf(() => vault.set(name, Buffer.from('v'))), code);
  });
}

const sizes: readonly [sizeBytes: number, code: string | null][] = [
  [0, 'VAULT_SECRET_MALFORMED'],
  [1, null],
  [MAX_VALUE_BYTES, null],
  [MAX_VALUE_BYTES + 1, 'VAULT_SECRET_MALFORMED'],
];

for (const [sizeBytes, code] of sizes) {
  test(`Vault.set() gives ${code ?? 'no error'} for a value of ${sizeBytes} bytes`, async (t) => {
    const { vault } = await fresh(t);
    t.is(await codeOf(() => vault.set('a', Buffer.alloc(sizeBytes, 0xff))), code);
    if (code === null) t.deepEqual(vault.get('a'), Buffer.alloc(sizeBytes, 0xff));
  });
}

test('Vault.create() does not overwrite', async (t) => {
  const { options, vault } = await fresh(t);
  await vault.set('a', Buffer.from('kept'));
  t.is(await codeOf(() => Vault.create(options)), 'VAULT_FILE_EXISTS');
  t.is(vault.get('a').toString(), 'kept');
});

test('Vault.open() says that the file is missing', async (t) => {
  const folder = temporaryFolder(t);
  const options = { file: join(folder, 'none'), key: keyFile(folder) };
  t.is(await codeOf(() => Vault.open(options)), 'VAULT_FILE_MISSING');
  t.false(existsSync(options.file));
});

test('Vault tells a wrong key from a damaged file', async (t) => {
  const { folder, options } = await fresh(t);
  t.is(await codeOf(() => Vault.open({ ...options, key: keyFile(folder, 8) })), 'VAULT_KEY_WRONG');
});

test('Vault opens with its passphrase and with nothing else', async (t) => {
  const folder = temporaryFolder(t);
  const passphrase = (text: string) => ({ kind: 'passphrase', passphrase: async () => text }) as const;
  const file = join(folder, 'v');
  // The same letters as one code point and as two.
  const vault = await Vault.create({ file, key: passphrase('caf\u00e9 au lait'), scryptCost: cheapScrypt });
  await vault.set('a', Buffer.from('value'));
  vault.close();
  const again = await Vault.open({ file, key: passphrase('cafe\u0301 au lait') });
  t.teardown(() => again.close());
  t.is(again.get('a').toString(), 'value');
  t.is(await codeOf(() => Vault.open({ file, key: passphrase('cafe au lait') })), 'VAULT_KEY_WRONG');
  t.is(await codeOf(() => Vault.open({ file, key: keyFile(folder) })), 'VAULT_KEY_WRONG');
  t.is(await codeOf(() => Vault.open({ file, key: passphrase('short') })), 'VAULT_KEY_MALFORMED');
});

test('Vault refuses a passphrase for a file that has a key file', async (t) => {
  const { options } = await fresh(t);
  const key = { kind: 'passphrase', passphrase: async () => 'long enough' } as const;
  t.is(await codeOf(() => Vault.open({ ...options, key })), 'VAULT_KEY_WRONG');
});

test('Vault.close() can be called twice and refuses everything after', async (t) => {
  const { vault } = await fresh(t);
  await vault.set('a', Buffer.from('value'));
  vault.close();
  vault.close();
  for (const work of [() => vault.get('a'), () => vault.list(), () => vault.set('a', Buffer.from('b'))]) {
    t.is(await codeOf(work), 'VAULT_CLOSED');
  }
});

test('Vault writes with mode 0600 and leaves nothing beside its file', async (t) => {
  const { folder, options, vault } = await fresh(t);
  writeFileSync(`${options.file}.tmp-0123456789abcdef`, 'left by a crash');
  chmodSync(options.file, 0o644);
  await vault.set('a', Buffer.from('value'));
  t.is(statSync(options.file).mode & 0o777, 0o600);
  t.deepEqual(readdirSync(folder).sort(), ['key-7', 'vault.sealed']);
});

test('Vault follows a link to its file and replaces the file, not the link', async (t) => {
  const { folder, options, vault } = await fresh(t);
  const link = join(folder, 'link');
  symlinkSync(options.file, link);
  const linked = await Vault.open({ ...options, file: link });
  t.teardown(() => linked.close());
  await linked.set('a', Buffer.from('value'));
  t.is(vault.get('a').toString(), 'value');
});

test('Vault refuses to go back to an older copy of its file while it runs', async (t) => {
  const { options, vault } = await fresh(t);
  await vault.set('a', Buffer.from('one'));
  const older = readFileSync(options.file);
  await vault.set('a', Buffer.from('two'));
  t.is(vault.get('a').toString(), 'two');
  writeFileSync(`${options.file}.restored`, older, { mode: 0o600 });
  renameSync(`${options.file}.restored`, options.file);
  t.is(await codeOf(() => vault.get('a')), 'VAULT_FILE_CORRUPT');
  t.is(await codeOf(() => vault.set('a', Buffer.from('three'))), 'VAULT_FILE_CORRUPT');
});
