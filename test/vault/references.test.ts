import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import {
  createResolver,
  formatReference,
  MAX_VALUE_BYTES,
  parseReference,
  type Reference,
  Vault,
  VaultError,
} from '../../vault/index.ts';
import { command, testNeeding } from '../kit/require-system.ts';
import { codeOf, keyFile, temporaryFolder } from './fixture.ts';

const good: readonly [text: string, reference: Reference][] = [
  ['vault:github/acme', { kind: 'vault', name: 'github/acme', version: null }],
  ['vault:a@12', { kind: 'vault', name: 'a', version: 12 }],
  ['env:OPENAI_API_KEY', { kind: 'env', name: 'OPENAI_API_KEY' }],
  ['file:secrets/a b', { kind: 'file', path: 'secrets/a b' }],
  ['file:/run/secrets/a:b', { kind: 'file', path: '/run/secrets/a:b' }],
];

for (const [text, reference] of good) {
  test(`parseReference() reads ${text}`, (t) => {
    t.deepEqual(parseReference(text), reference);
    t.is(formatReference(reference), text);
  });
}

const bad = [
  '',
  'vault:',
  'vault:a@',
  'vault:a@0',
  'vault:a@01',
  'vault:a@-1',
  'vault:a@1e3',
  'vault:a@1@2',
  'vault:a@9999999999',
  'vault:a..b',
  'vault: a',
  'vault:a\n',
  'Vault:a',
  ' vault:a',
  'env:',
  'env:1A',
  'env:A-B',
  'env:A\n',
  'env:A=B',
  'file:',
  'file:a\0b',
  `file:${'a'.repeat(5_000)}`,
  'http://example.com',
  'ghp_0123456789abcdef0123456789abcdef0123',
];

for (const text of bad) {
  test(`parseReference() refuses ${JSON.stringify(text.slice(0, 24))} and does not repeat it`, (t) => {
    const error = t.throws(() => parseReference(text), { instanceOf: VaultError });
    t.is(error?.code, 'VAULT_REFERENCE_MALFORMED');
    if (text.length > 20) t.false(error?.message.includes(text.slice(5)));
  });
}

test('parseReference() never throws anything but its own error and has one text for each reference', (t) => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.tuple(fc.constantFrom('vault:', 'env:', 'file:'), fc.string()).map((parts) => parts.join('')),
    fc.tuple(fc.constantFrom('vault:a@', 'vault:a/b@'), fc.nat()).map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(text, (candidate) => {
      try {
        return formatReference(parseReference(candidate)) === candidate;
      } catch (error) {
        return error instanceof VaultError && error.code === 'VAULT_REFERENCE_MALFORMED';
      }
    }),
  );
  t.pass();
});

test('resolve() reads the sealed file, the newest version or the one that is named', async (t) => {
  const folder = temporaryFolder(t);
  const vault = await Vault.create({ file: join(folder, 'v'), key: keyFile(folder) });
  t.teardown(() => vault.close());
  const resolver = createResolver({ vault, baseDir: folder });
  await vault.set('a', Buffer.from('one'));
  await vault.set('a', Buffer.from('two'));
  t.deepEqual(await resolver.resolve('vault:a'), { value: Buffer.from('two'), version: '2' });
  t.deepEqual(await resolver.resolve('vault:a@1'), { value: Buffer.from('one'), version: '1' });
  t.is(await codeOf(() => resolver.resolve('vault:a@3')), 'VAULT_SECRET_MISSING');
  t.is(await codeOf(() => resolver.resolve('vault:b')), 'VAULT_SECRET_MISSING');
  t.is(await codeOf(() => createResolver({ baseDir: folder }).resolve('vault:a')), 'VAULT_SOURCE_UNAVAILABLE');
});

test('resolve() reads variables and counts their changed values', async (t) => {
  const env: Record<string, string | undefined> = { A: 'one', EMPTY: '' };
  const resolver = createResolver({ baseDir: '/', env });
  t.deepEqual(await resolver.resolve('env:A'), { value: Buffer.from('one'), version: '1' });
  t.is((await resolver.resolve('env:A')).version, '1');
  env.A = 'two';
  t.deepEqual(await resolver.resolve('env:A'), { value: Buffer.from('two'), version: '2' });
  t.is(await codeOf(() => resolver.resolve('env:B')), 'VAULT_SECRET_MISSING');
  t.is(await codeOf(() => resolver.resolve('env:EMPTY')), 'VAULT_SECRET_MALFORMED');
});

const contents: readonly [name: string, content: string, value: string | null][] = [
  ['one newline', 'value\n', 'value'],
  ['CRLF', 'value\r\n', 'value'],
  ['no newline', 'value', 'value'],
  ['two newlines', 'value\n\n', 'value\n'],
  ['outer spaces', ' value \n', ' value '],
  ['only a newline', '\n', null],
  ['nothing', '', null],
  ['the largest value', `${'x'.repeat(MAX_VALUE_BYTES)}\n`, 'x'.repeat(MAX_VALUE_BYTES)],
  ['a byte too much', 'x'.repeat(MAX_VALUE_BYTES + 1), null],
  ['far too much', 'x'.repeat(MAX_VALUE_BYTES * 3), null],
];

for (const [name, content, value] of contents) {
  test(`resolve() ${value === null ? 'refuses' : 'reads'} a file with ${name}`, async (t) => {
    const folder = temporaryFolder(t);
    writeFileSync(join(folder, 'secret'), content);
    const work = createResolver({ baseDir: folder }).resolve('file:secret');
    if (value === null) t.is(await codeOf(() => work), 'VAULT_SECRET_MALFORMED');
    else t.is((await work).value.toString(), value);
  });
}

test('resolve() reads a file again when it was changed in place or replaced', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'secret');
  const resolver = createResolver({ baseDir: folder });
  writeFileSync(path, 'one');
  (await resolver.resolve('file:secret')).value.fill(0);
  t.deepEqual(await resolver.resolve('file:secret'), { value: Buffer.from('one'), version: '1' });
  writeFileSync(path, 'four');
  t.deepEqual(await resolver.resolve('file:secret'), { value: Buffer.from('four'), version: '2' });
  writeFileSync(`${path}.new`, 'five');
  renameSync(`${path}.new`, path);
  t.deepEqual(await resolver.resolve(`file:${path}`), { value: Buffer.from('five'), version: '1' });
  t.is((await resolver.resolve('file:secret')).version, '3');
});

test('resolve() says when a file is missing or is a folder', async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'folder'));
  const resolver = createResolver({ baseDir: folder });
  t.is(await codeOf(() => resolver.resolve('file:none')), 'VAULT_SECRET_MISSING');
  t.is(await codeOf(() => resolver.resolve('file:folder')), 'VAULT_SOURCE_UNAVAILABLE');
});

testNeeding(command('mkfifo', 'coreutils'))('resolve() does not wait for a pipe', async (t) => {
  const folder = temporaryFolder(t);
  execFileSync('mkfifo', [join(folder, 'pipe')]);
  t.is(await codeOf(() => createResolver({ baseDir: folder }).resolve('file:pipe')), 'VAULT_SOURCE_UNAVAILABLE');
});

test('close() of a resolver can be called twice and refuses what comes after', async (t) => {
  const resolver = createResolver({ baseDir: '/', env: { A: 'one' } });
  resolver.close();
  resolver.close();
  t.is(await codeOf(() => resolver.resolve('env:A')), 'VAULT_CLOSED');
});
