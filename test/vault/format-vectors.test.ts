import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { Vault } from '../../vault/index.ts';
import { cheapScrypt, countingRandom, fixedNow, keyFile, temporaryFolder } from './fixture.ts';

const folderOfVectors = new URL('../../../test/testdata/vault/', import.meta.url);

/** Files that version 0.1 wrote: they have to open for ever, and the same input has to give the same bytes as long as the format is 1. */
const vectors = [
  { name: 'key-file.sealed', key: (folder: string) => keyFile(folder) },
  {
    name: 'passphrase.sealed',
    key: () => ({ kind: 'passphrase', passphrase: async () => 'correct horse battery staple' }) as const,
  },
] as const;

for (const { name, key } of vectors) {
  test(`Vault writes ${name} byte for byte`, async (t) => {
    const folder = temporaryFolder(t);
    const options = { key: key(folder), now: () => fixedNow, random: countingRandom(), scryptCost: cheapScrypt };
    const vault = await Vault.create({ ...options, file: join(folder, name) });
    await vault.set('github/acme', Buffer.from('ghp_first'), 'alice');
    await vault.set('github/acme', Buffer.from('ghp_second'));
    await vault.seal('placeholders', 'current', Buffer.alloc(32, 1));
    vault.close();
    t.is(
      readFileSync(join(folder, name)).toString('hex'),
      readFileSync(new URL(name, folderOfVectors)).toString('hex'),
    );
  });

  test(`Vault opens ${name}`, async (t) => {
    const folder = temporaryFolder(t);
    copyFileSync(new URL(name, folderOfVectors), join(folder, name));
    const vault = await Vault.open({ file: join(folder, name), key: key(folder) });
    t.teardown(() => vault.close());
    t.is(vault.get('github/acme').toString(), 'ghp_second');
    t.is(vault.getVersion('github/acme', 1).toString(), 'ghp_first');
    t.deepEqual(vault.unseal('placeholders', 'current'), Buffer.alloc(32, 1));
    t.deepEqual(vault.list(), [
      {
        name: 'github/acme',
        version: 2,
        versions: 2,
        createdAt: '2026-01-02T03:04:05.000Z',
        updatedAt: '2026-01-02T03:04:05.000Z',
        sizeBytes: 10,
      },
    ]);
  });
}
