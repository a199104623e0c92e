/** Properties of what vault/ reads inside and beside the sealed file: manifest, authority, key files, locks. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { openContents } from '../../vault/contents.ts';
import { Vault } from '../../vault/index.ts';
import { masterKey } from '../../vault/key-source.ts';
import { packNewAuthority, unpackAuthority } from '../../vault/packed-authority.ts';
import { encodeHeader, parseSealedFile } from '../../vault/sealed-file.ts';
import { openSodium } from '../../vault/sodium.ts';
import { deriveVaultKeys } from '../../vault/vault-keys.ts';
import { acquireWriteLock } from '../../vault/write-lock.ts';
import { codeOf, countingRandom, keyFile, temporaryFolder } from './fixture.ts';

test('openContents() never throws anything but its own error on a manifest that was sealed with the right key', async (t) => {
  const folder = temporaryFolder(t);
  const options = { file: join(folder, 'v'), key: keyFile(folder) };
  const vault = await Vault.create({ ...options, random: countingRandom() });
  await vault.set('alpha', Buffer.from('alpha one'));
  vault.close();
  const keys = deriveVaultKeys(await openSodium(), Buffer.alloc(32, 7));
  const file = parseSealedFile(readFileSync(options.file));
  const header = encodeHeader(file.header);
  const place = { purpose: 'manifest', name: '', version: 1 } as const;
  const good: unknown = JSON.parse(keys.open(place, file.manifest, header).toString('utf8'));
  const [, [entry = []] = []] = good as [number, unknown[][]]; // what sealContents writes
  const field = fc.oneof(fc.jsonValue(), fc.constantFrom('secret', '__proto__', -1, 1.5, 2 ** 60, null));
  const changed = fc
    .tuple(fc.nat(entry.length), field)
    .map(([at, value]) => [1, [entry.with(at % entry.length, value)]]);
  const text = fc.oneof(
    fc.oneof(fc.jsonValue(), changed).map((value) => JSON.stringify(value)),
    fc.string({ unit: 'binary' }),
  );
  const random = countingRandom();
  await fc.assert(
    fc.asyncProperty(text, async (manifest) => {
      const sealed = keys.seal(place, Buffer.from(manifest, 'utf8'), { header, nonce: random(24) });
      const code = await codeOf(() => openContents({ ...file, manifest: sealed }, keys));
      return code === 'VAULT_FILE_CORRUPT' || code === null;
    }),
    { numRuns: 300 },
  );
  t.pass();
});

test('unpackAuthority() never throws anything but its own error', async (t) => {
  const day = 86_400_000;
  const packed = packNewAuthority({ notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + day) });
  t.truthy(unpackAuthority(packed));
  const edits = fc.array(fc.tuple(fc.nat(packed.length - 1), fc.nat(255)), { minLength: 1, maxLength: 3 });
  const changed = edits.map((list) => {
    const copy = Buffer.from(packed);
    for (const [at, value] of list) copy[at] = value;
    return copy;
  });
  const cut = fc.nat(packed.length - 1).map((length) => packed.subarray(0, length));
  const anything = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));
  await fc.assert(
    fc.asyncProperty(fc.oneof(changed, cut, anything), async (bytes) => {
      const code = await codeOf(() => unpackAuthority(bytes));
      return code === 'VAULT_CA_CORRUPT' || (code === null && bytes.length === packed.length);
    }),
    { numRuns: 200 },
  );
  t.pass();
});

test('masterKey() takes exactly 32 bytes in base64 or hex from a file, and never throws anything but its own error', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'key');
  const bytes = fc.uint8Array({ minLength: 30, maxLength: 34 }).map((array) => Buffer.from(array));
  const text = fc.oneof(
    fc.tuple(bytes, fc.constantFrom('base64', 'hex', 'base64url', 'latin1')).map(([key, form]) => key.toString(form)),
    fc.string({ unit: 'binary', maxLength: 140 }),
  );
  await fc.assert(
    fc.asyncProperty(text, async (content) => {
      writeFileSync(path, content, { mode: 0o600 });
      const code = await codeOf(async () => {
        const key = await masterKey({ kind: 'file', path }, { kind: 'file' });
        const forms = [key.toString('base64'), key.toString('hex')];
        if (!forms.some((form) => form.toLowerCase() === content.trim().toLowerCase())) throw new Error('not that key');
      });
      return code === null || code === 'VAULT_KEY_MALFORMED';
    }),
  );
  t.pass();
});

test('acquireWriteLock() gets the lock or gives up with its own error whatever the lock file holds', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'lock');
  const holder = fc.record({
    token: fc.oneof(fc.string({ maxLength: 4 }), fc.nat()),
    pid: fc.oneof(fc.integer(), fc.double(), fc.constant(process.pid)),
    startTicks: fc.string({ maxLength: 4 }),
    pidNamespace: fc.string({ maxLength: 4 }),
  });
  const content = fc.oneof(
    fc.oneof(holder, fc.jsonValue()).map((value) => JSON.stringify(value)),
    fc.string({ unit: 'binary' }),
  );
  await fc.assert(
    fc.asyncProperty(content, async (text) => {
      writeFileSync(path, text);
      const code = await codeOf(async () => (await acquireWriteLock(path, 0)).release());
      return code === null || code === 'VAULT_WRITE_FAILED';
    }),
  );
  t.pass();
});
