import { join } from 'node:path';
import test from 'ava';
import { vaultChanges } from '../../gateway/vault-changes.ts';
import { type SecretInfo, Vault } from '../../vault/index.ts';
import { withGateway } from '../kit/gateway.ts';
import { command } from './cli/command-line.ts';

const secret = (name: string, version: number, updatedAt = '2026-01-01T00:00:00.000Z'): SecretInfo => ({
  name,
  version,
  versions: version,
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt,
  sizeBytes: 8,
  updatedBy: 'cli:uid=7',
});

test('vaultChanges() tells what was added, replaced, removed and set again', (t) => {
  const before = [secret('kept', 1), secret('new-version', 1), secret('gone', 3), secret('again', 1)];
  const after = [
    secret('kept', 1),
    secret('new-version', 2),
    secret('again', 1, '2026-01-02T00:00:00.000Z'),
    secret('new', 1),
  ];
  t.deepEqual(
    vaultChanges(before, after).map(({ change, name, version, by }) => [change, name, version, by]),
    [
      ['replaced', 'new-version', 2, 'cli:uid=7'],
      ['replaced', 'again', 1, 'cli:uid=7'],
      ['added', 'new', 1, 'cli:uid=7'],
      ['removed', 'gone', null, null],
    ],
  );
  t.deepEqual(vaultChanges(after, after), []);
});

test('a running gateway records who changed a secret at the next reload, and at its end', async (t) => {
  const policy = 'version: 1\nname: p\nrules: []\n';
  const gateway = await withGateway(t, {
    policy,
    secrets: { 'a/old': 'value-of-old-01', 'a/kept': 'value-of-kept-01' },
  });
  const stored = await command(['vault', 'set', 'a/new', '--home', gateway.home], { stdin: 'value-of-new-0123' });
  t.is(stored.code, 0, stored.stderr);
  const vault = await Vault.open({
    file: join(gateway.home, 'vault.sealed'),
    key: { kind: 'file', path: join(gateway.home, 'vault.key') },
  });
  t.teardown(() => vault.close());
  await vault.remove('a/old');
  t.true((await gateway.reload(policy)).ok);
  await vault.set('a/kept', Buffer.from('value-of-kept-02'), 'operator');
  await gateway.gateway.close();
  const changes = (await gateway.audit.all()).filter(({ kind }) => kind === 'vault.change');
  t.deepEqual(
    changes
      .map(({ text }) => JSON.parse(text))
      .map(({ actor, code, detail }) => [actor, code, detail.name, detail.version]),
    [
      [`cli:uid=${process.getuid?.()}`, 'added', 'a/new', 1],
      ['unknown', 'removed', 'a/old', null],
      ['operator', 'replaced', 'a/kept', 2],
    ],
  );
  t.false((await gateway.audit.all()).some(({ text }) => text.includes('value-of')));
});
