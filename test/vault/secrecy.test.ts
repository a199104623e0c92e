import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import test from 'ava';
import fc from 'fast-check';
import type { CompiledCredential } from '../../policy/types.ts';
import {
  createCredentialSource,
  createRedactor,
  createResolver,
  InterceptionCa,
  parseReference,
  Vault,
} from '../../vault/index.ts';
import { prepareCredential } from '../../vault/prepared-credential.ts';
import { keyFile, temporaryFolder } from './fixture.ts';

/** Long enough not to turn up by chance, with characters that a careless message would quote or escape. */
const secret = fc.stringMatching(/^SECRET[ -~]{8,20}[A-Z]{4}$/);

/** Everything that a log line could make of a thing. */
function shown(thing: unknown): string {
  const parts = [inspect(thing, { depth: 20, showHidden: true }), JSON.stringify(thing) ?? '', String(thing)];
  if (thing instanceof Error) parts.push(thing.message, thing.stack ?? '', shown(thing.cause));
  return parts.join('\n');
}

function shows(thing: unknown, value: string): boolean {
  const text = shown(thing);
  const bytes = Buffer.from(value);
  const forms = [value, JSON.stringify(value).slice(1, -1), bytes.toString('base64'), bytes.toString('hex')];
  const asInspected = inspect(bytes).slice('<Buffer '.length, -1);
  return [...forms, asInspected, [...bytes].join(',')].some((form) => text.includes(form));
}

async function failureOf(work: () => unknown): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error('it did not fail');
}

function credential(reference: string): CompiledCredential {
  const bind = { hosts: ['api.acme.test'], methods: [], paths: [], ports: [] };
  const inject = { kind: 'header', header: 'authorization', format: 'Bearer {secret}' } as const;
  const spec = {
    name: 'token',
    secret: reference,
    bind,
    inject,
    allowCleartext: false,
    onClientCredential: 'deny',
    line: 1,
  } as const;
  return { id: 0, spec, slot: 'authorization' };
}

test('no error of vault/ shows a value', async (t) => {
  const folder = temporaryFolder(t);
  const vault = await Vault.create({ file: join(folder, 'v'), key: keyFile(folder) });
  t.teardown(() => vault.close());
  await fc.assert(
    fc.asyncProperty(secret, async (value) => {
      writeFileSync(join(folder, 'file'), `${value}\r\n${value}`);
      const redactor = createRedactor();
      const resolver = createResolver({ vault, baseDir: folder, env: { A: `${value}\n${value}` } });
      const source = createCredentialSource({ resolver, redactor, failureTtlMs: 0 });
      const failures = [
        // A value where a name or a reference belongs, and a value that its place does not take.
        () => vault.set(`${value}\n`, Buffer.from('v')),
        () => vault.set('a', Buffer.from(value.repeat(10_000))),
        () => parseReference(value),
        () => parseReference(`env:${value} `),
        () => parseReference(`vault:${value}\n`),
        () => prepareCredential(credential('env:A'), { value: Buffer.from(`${value}\0`), version: '1' }),
        () => source.prepare(credential('env:A')),
        () => source.prepare(credential('file:file')),
        () => source.prepare(credential(value)),
        () => InterceptionCa.create({ commonName: value.repeat(10) }),
      ];
      for (const work of failures) if (shows(await failureOf(work), value)) return false;
      return true;
    }),
    { numRuns: 40 },
  );
  t.pass();
});

test('no key source shows its key or passphrase in an error', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'v');
  const path = join(folder, 'key');
  const text = 'SECRETSECRETSECRETSECRETSECRETSECRET';
  writeFileSync(path, text, { mode: 0o600 });
  t.false(shows(await failureOf(() => Vault.create({ file, key: { kind: 'file', path } })), text));
  const long = text.repeat(100);
  const key = { kind: 'passphrase', passphrase: async () => long } as const;
  t.false(shows(await failureOf(() => Vault.create({ file, key })), text));
});

test('nothing that vault/ hands out shows a value when it is printed', async (t) => {
  const folder = temporaryFolder(t);
  const vault = await Vault.create({ file: join(folder, 'v'), key: keyFile(folder) });
  t.teardown(() => vault.close());
  const ca = await InterceptionCa.open({ store: vault });
  const redactor = createRedactor();
  const source = createCredentialSource({ resolver: createResolver({ vault, baseDir: folder }), redactor });
  await fc.assert(
    fc.asyncProperty(secret, async (value) => {
      await vault.set('a', Buffer.from(value));
      source.invalidate();
      const prepared = await source.prepare(credential('vault:a'));
      const isShown = [vault, vault.list(), redactor, source, prepared].some((thing) => shows(thing, value));
      return !isShown && redactor.redact(`x ${value} y`) === 'x [redacted:token] y';
    }),
    { numRuns: 25 },
  );
  const keyPem = ca.leafFor('api.acme.test').keyPem.split('\n')[1] ?? '';
  t.true(keyPem.length > 40);
  t.false(shown(ca).includes(keyPem));
  t.false(shows(vault, Buffer.alloc(32, 7).toString('latin1')));
});
