import { inspect } from 'node:util';
import test from 'ava';
import fc from 'fast-check';
import type { CompiledCredential, CredentialInject } from '../../policy/types.ts';
import {
  createCredentialSource,
  createRedactor,
  type ResolvedSecret,
  type SecretResolver,
  VaultError,
} from '../../vault/index.ts';
import { MAX_LINE_BYTES, MIN_ECHO_BYTES, prepareCredential } from '../../vault/prepared-credential.ts';
import { codeOf } from './fixture.ts';

const bearer: CredentialInject = { kind: 'header', header: 'authorization', format: 'Bearer {secret}' };
const basic: CredentialInject = { kind: 'basic', username: 'bot' };

function credential(inject: CredentialInject, secret = 'env:A'): CompiledCredential {
  const bind = { hosts: ['api.acme.test'], methods: [], paths: [], ports: [] };
  const spec = {
    name: 'token',
    secret,
    bind,
    inject,
    allowCleartext: false,
    onClientCredential: 'deny',
    line: 1,
  } as const;
  return { id: 0, spec, slot: inject.kind === 'basic' ? 'authorization' : inject.header };
}

function prepared(inject: CredentialInject, value: string | Buffer) {
  return prepareCredential(credential(inject), { value: Buffer.from(value), version: '3' });
}

/** A resolver that counts and answers when told. */
function scripted(answer: () => Promise<ResolvedSecret> | ResolvedSecret) {
  let calls = 0;
  const resolver: SecretResolver = {
    async resolve() {
      calls += 1;
      return answer();
    },
    close() {},
  };
  return { resolver, calls: () => calls };
}

const secret = (text: string, version = '1') => ({ value: Buffer.from(text), version });

test('prepareCredential() builds a header line with the value in its format', (t) => {
  const line = (inject: CredentialInject, value: string) => prepared(inject, value).line.toString('latin1');
  t.is(line(bearer, 'ghp_example'), 'authorization: Bearer ghp_example\r\n');
  t.is(line({ kind: 'header', header: 'x-api-key', format: '{secret}' }, 'k$&-$1-key'), 'x-api-key: k$&-$1-key\r\n');
  t.is(line({ kind: 'header', header: 'x-auth', format: 'a {secret} z' }, '{secret}'), 'x-auth: a {secret} z\r\n');
  t.is(line(basic, 'p:w ö'), `authorization: Basic ${Buffer.from('bot:p:w ö').toString('base64')}\r\n`);
  t.is(prepared(bearer, 'ghp_example').version, '3');
});

test('prepareCredential() lists what must not come back, longest first and each once', (t) => {
  const echoes = (inject: CredentialInject, value: string) =>
    prepared(inject, value).echoes.map((echo) => echo.toString());
  const token = Buffer.from('bot:pa55word').toString('base64');
  t.deepEqual(echoes(bearer, 'ghp_example'), ['Bearer ghp_example', 'ghp_example']);
  t.deepEqual(echoes({ kind: 'header', header: 'x-api-key', format: '{secret}' }, 'key-value'), ['key-value']);
  t.deepEqual(echoes(basic, 'pa55word'), [`Basic ${token}`, token, 'pa55word']);
  t.deepEqual(echoes(bearer, 'x'.repeat(MIN_ECHO_BYTES - 1)), ['Bearer xxxxx']);
  t.deepEqual(echoes(bearer, 'x'.repeat(MIN_ECHO_BYTES)), ['Bearer xxxxxx', 'xxxxxx']);
});

const values: readonly [name: string, value: string | Buffer, inject: CredentialInject, isGood: boolean][] = [
  ['printable ASCII', 'aZ09!"~ x', bearer, true],
  ['CR', 'a\rb', bearer, false],
  ['LF', 'a\nb', bearer, false],
  ['a trailing LF', 'ab\n', bearer, false],
  ['NUL', 'a\0b', bearer, false],
  ['TAB', 'a\tb', bearer, false],
  ['DEL', 'a\x7fb', bearer, false],
  ['ESC', 'a\x1bb', bearer, false],
  ['UTF-8', 'ä', bearer, false],
  ['latin1', Buffer.of(0x61, 0xe4), bearer, false],
  ['a leading space', ' a', bearer, false],
  ['a trailing space', 'a ', bearer, false],
  ['nothing', '', bearer, false],
  ['more than a header line', 'x'.repeat(MAX_LINE_BYTES), bearer, false],
  ['UTF-8 in a password', 'ä', basic, true],
  ['LF in a password', 'a\nb', basic, false],
  ['NUL in a password', 'a\0b', basic, false],
  ['no password', '', basic, false],
];

for (const [name, value, inject, isGood] of values) {
  test(`prepareCredential() ${isGood ? 'takes' : 'refuses'} a value with ${name}`, async (t) => {
    t.is(await codeOf(() => prepared(inject, value)), isGood ? null : 'VAULT_SECRET_MALFORMED');
  });
}

const injects: readonly [name: string, inject: CredentialInject][] = [
  ['CRLF in its format', { kind: 'header', header: 'x-a', format: 'a\r\nx: {secret}' }],
  ['no place in its format', { kind: 'header', header: 'x-a', format: 'a' }],
  ['two places in its format', { kind: 'header', header: 'x-a', format: '{secret}{secret}' }],
  ['a space in its header', { kind: 'header', header: 'x a', format: '{secret}' }],
  ['a colon in its header', { kind: 'header', header: 'x:', format: '{secret}' }],
  ['a colon in its username', { kind: 'basic', username: 'a:b' }],
  ['LF in its username', { kind: 'basic', username: 'a\nb' }],
];

for (const [name, inject] of injects) {
  test(`prepareCredential() refuses a credential with ${name}`, async (t) => {
    t.is(await codeOf(() => prepared(inject, 'value')), 'VAULT_SECRET_MALFORMED');
  });
}

test('prepareCredential() never builds more than one line', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), fc.constantFrom(bearer, basic), (bytes, inject) => {
      try {
        const { line } = prepared(inject, Buffer.from(bytes));
        return /^authorization: [ -~]*[!-~]\r\n$/.test(line.toString('latin1'));
      } catch (error) {
        return error instanceof VaultError && error.code === 'VAULT_SECRET_MALFORMED';
      }
    }),
  );
  t.pass();
});

test('a prepared credential shows its name but not its value when it is printed', (t) => {
  const shown = prepared(bearer, 'ghp_example');
  const hex = Buffer.from('ghp_example').toString('hex').match(/../g)?.join(' ') ?? '';
  for (const text of [
    inspect(shown),
    inspect({ shown }, { depth: 9 }),
    JSON.stringify({ shown }),
    `${inspect([shown])}`,
  ]) {
    t.true(text.includes('token'));
    t.false(text.includes('ghp_example') || text.includes(hex) || text.includes('103,104'));
  }
});

test('createCredentialSource() reads once for many callers and is ready then', async (t) => {
  const { resolver, calls } = scripted(() => secret('ghp_example'));
  const redactor = createRedactor();
  const source = createCredentialSource({ resolver, redactor });
  const one = credential(bearer);
  t.is(source.ready(one), undefined);
  const all = await Promise.all([source.prepare(one), source.prepare(one), source.prepare(one)]);
  t.is(new Set(all).size, 1);
  t.is(source.ready(one), all[0]);
  t.is(await source.prepare(one), all[0]);
  t.is(calls(), 1);
  t.is(redactor.redact('x ghp_example'), 'x [redacted:token]');
});

test('createCredentialSource() wipes what the resolver gave', async (t) => {
  const value = Buffer.from('ghp_example');
  const { resolver } = scripted(() => ({ value, version: '1' }));
  const source = createCredentialSource({ resolver, redactor: createRedactor() });
  const { line } = await source.prepare(credential(bearer));
  t.deepEqual(value, Buffer.alloc(11));
  t.true(line.includes('ghp_example'));
});

test('createCredentialSource() keeps credentials apart by identity', async (t) => {
  const { resolver } = scripted(() => secret('ghp_example'));
  const source = createCredentialSource({ resolver, redactor: createRedactor() });
  const [older, newer] = [credential(bearer), credential(bearer)];
  await source.prepare(older);
  t.is(source.ready(newer), undefined);
});

test('createCredentialSource() asks again after the time to live', async (t) => {
  let now = 1_000;
  let version = 1;
  const { resolver, calls } = scripted(() => secret(`value-${version}`, String(version)));
  const source = createCredentialSource({ resolver, redactor: createRedactor(), ttlMs: 100, now: () => now });
  const one = credential(bearer);
  await source.prepare(one);
  version = 2;
  now += 99;
  t.is(source.ready(one)?.version, '1');
  now += 1;
  t.is(source.ready(one), undefined);
  t.is((await source.prepare(one)).version, '2');
  t.is(calls(), 2);
});

test('createCredentialSource() repeats a failure for its time and then asks again', async (t) => {
  let now = 1_000;
  const { resolver, calls } = scripted(() => {
    if (calls() > 1) return secret('ghp_example');
    throw new VaultError('VAULT_SECRET_MISSING', 'Cannot find it');
  });
  const source = createCredentialSource({ resolver, redactor: createRedactor(), failureTtlMs: 100, now: () => now });
  const one = credential(bearer);
  t.is(await codeOf(() => source.prepare(one)), 'VAULT_SECRET_MISSING');
  now += 99;
  t.is(await codeOf(() => source.prepare(one)), 'VAULT_SECRET_MISSING');
  t.is(source.ready(one), undefined);
  t.is(calls(), 1);
  now += 1;
  await source.prepare(one);
  t.is(calls(), 2);
});

test('createCredentialSource() does not serve the old value when asking again fails', async (t) => {
  let now = 1_000;
  const { resolver, calls } = scripted(() =>
    calls() === 1 ? secret('ghp_example') : Promise.reject(new Error('gone')),
  );
  const source = createCredentialSource({ resolver, redactor: createRedactor(), ttlMs: 100, now: () => now });
  const one = credential(bearer);
  await source.prepare(one);
  now += 100;
  t.is(await codeOf(() => source.prepare(one)), 'VAULT_SOURCE_UNAVAILABLE');
  t.is(source.ready(one), undefined);
});

test('createCredentialSource() gives up on a source that does not answer', async (t) => {
  const { resolver } = scripted(() => new Promise(() => {}));
  const source = createCredentialSource({ resolver, redactor: createRedactor(), resolveTimeoutMs: 10 });
  const keepAlive = setInterval(() => {}, 1_000);
  t.teardown(() => clearInterval(keepAlive));
  t.is(await codeOf(() => source.prepare(credential(bearer))), 'VAULT_SOURCE_UNAVAILABLE');
});

test('createCredentialSource() refuses a value that the redactor cannot take', async (t) => {
  const { resolver } = scripted(() => secret('ghp_example'));
  const add = () => {
    throw new VaultError('VAULT_REDACTOR_FULL', 'Cannot redact');
  };
  const source = createCredentialSource({ resolver, redactor: { add, redact: (text) => text } });
  const one = credential(bearer);
  t.is(await codeOf(() => source.prepare(one)), 'VAULT_REDACTOR_FULL');
  t.is(source.ready(one), undefined);
});

test('invalidate() forgets what is prepared and what is being read', async (t) => {
  const answers: ((value: ResolvedSecret) => void)[] = [];
  const { resolver, calls } = scripted(() => new Promise((resolve) => answers.push(resolve)));
  const source = createCredentialSource({ resolver, redactor: createRedactor() });
  const one = credential(bearer);
  const before = source.prepare(one);
  source.invalidate();
  const after = source.prepare(one);
  answers[0]?.(secret('old-value', '1'));
  t.is((await before).version, '1');
  t.is(source.ready(one), undefined);
  answers[1]?.(secret('new-value', '2'));
  t.is((await after).version, '2');
  t.is(source.ready(one)?.version, '2');
  t.is(calls(), 2);
});

test('close() of a credential source can be called twice, refuses what comes after and leaves lines in flight whole', async (t) => {
  const { resolver } = scripted(() => secret('ghp_example'));
  const source = createCredentialSource({ resolver, redactor: createRedactor() });
  const one = credential(bearer);
  const { line } = await source.prepare(one);
  source.close();
  source.close();
  t.is(source.ready(one), undefined);
  t.is(await codeOf(() => source.prepare(one)), 'VAULT_CLOSED');
  t.is(line.toString(), 'authorization: Bearer ghp_example\r\n');
});
