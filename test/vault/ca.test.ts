import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import test from 'ava';
import { BACKDATE_MS, CA_LIFETIME_MS, type CaStore, LEAF_RENEW_BEFORE_MS } from '../../vault/ca.ts';
import { InterceptionCa, LEAF_LIFETIME_MS, MAX_SECURE_CONTEXTS, Vault, VaultError } from '../../vault/index.ts';
import { codeOf, fixedNow, keyFile, temporaryFolder } from './fixture.ts';

const ca = await InterceptionCa.create();

test('create() and leafFor() are valid from a day before they were made', async (t) => {
  const backdated = await InterceptionCa.create({ now: () => fixedNow });
  t.is(backdated.notBefore.getTime(), fixedNow - BACKDATE_MS);
  t.is(backdated.notAfter.getTime(), fixedNow + CA_LIFETIME_MS);
  const leaf = new X509Certificate(backdated.leafFor('api.acme.test').certPem);
  t.is(Date.parse(leaf.validFrom), fixedNow - BACKDATE_MS);
  t.is(Date.parse(leaf.validTo), fixedNow + LEAF_LIFETIME_MS);
});

test('create() writes dates after 2049 as they have to be written', async (t) => {
  const late = await InterceptionCa.create({ now: () => Date.UTC(2047, 0, 1) });
  t.is(late.notAfter.getUTCFullYear(), 2051);
  t.is(new X509Certificate(late.certPem).validTo, 'Dec 31 00:00:00 2051 GMT');
});

test('leafFor() gives serial numbers that are positive, long and never the same', (t) => {
  const serials = Array.from(
    { length: 50 },
    () => new X509Certificate(ca.leafFor('api.acme.test').certPem).serialNumber,
  );
  t.is(new Set(serials).size, serials.length);
  for (const serial of serials) t.regex(serial, /^[4-7][0-9A-F]{31}$/);
});

test('leafFor() ends its leaf with the authority and refuses after that', async (t) => {
  let now = fixedNow;
  const ending = await InterceptionCa.create({ now: () => now });
  now = fixedNow + CA_LIFETIME_MS - 1_000;
  t.is(ending.leafFor('api.acme.test').notAfter.getTime(), fixedNow + CA_LIFETIME_MS);
  now += 1_000;
  t.is(await codeOf(() => ending.leafFor('api.acme.test')), 'VAULT_CA_EXPIRED');
});

const notCanonical = [
  '',
  'API.acme.test',
  'a.',
  '.a',
  'a..b',
  '*.acme.test',
  'a b',
  'a\n',
  'a/b',
  'ä.test',
  '[::1]',
  'fe80::1%eth0',
  '-a',
  'a'.repeat(254),
];

for (const destination of notCanonical) {
  test(`leafFor() refuses ${JSON.stringify(destination.slice(0, 16))}`, async (t) => {
    t.is(await codeOf(() => ca.leafFor(destination)), 'VAULT_NAME_MALFORMED');
  });
}

test('leafFor() writes PEM without an empty line whatever the length', (t) => {
  const lengths = new Set<number>();
  for (let length = 1; length <= 60; length += 1) {
    const [pem = ''] = ca.leafFor('a'.repeat(length)).certPem.split('-----END');
    const lines = pem.trimEnd().split('\n').slice(1);
    t.true(
      lines.every((line, at) => (at === lines.length - 1 ? line.length >= 1 && line.length <= 64 : line.length === 64)),
    );
    lengths.add(lines.at(-1)?.length ?? 0);
  }
  t.true(lengths.has(64));
});

test('secureContextFor() keeps one context a host until shortly before its leaf ends', async (t) => {
  let now = fixedNow;
  const own = await InterceptionCa.create({ now: () => now });
  const first = own.secureContextFor('api.acme.test');
  now += LEAF_LIFETIME_MS - LEAF_RENEW_BEFORE_MS - 1;
  t.is(own.secureContextFor('api.acme.test'), first);
  t.not(own.secureContextFor('b.acme.test'), first);
  now += 1;
  t.not(own.secureContextFor('api.acme.test'), first);
});

test('secureContextFor() holds no more contexts than its bound and lets the least recently used go', async (t) => {
  const own = await InterceptionCa.create();
  const kept = own.secureContextFor('kept.acme.test');
  const gone = own.secureContextFor('gone.acme.test');
  for (let at = 0; at < MAX_SECURE_CONTEXTS - 2; at += 1) own.secureContextFor(`host-${at}.acme.test`);
  t.is(own.contextCount, MAX_SECURE_CONTEXTS);
  t.is(own.secureContextFor('kept.acme.test'), kept);
  own.secureContextFor('one-more.acme.test');
  t.is(own.contextCount, MAX_SECURE_CONTEXTS);
  t.is(own.secureContextFor('kept.acme.test'), kept);
  t.not(own.secureContextFor('gone.acme.test'), gone);
});

test('open() makes an authority once and finds it again in the sealed file', async (t) => {
  const folder = temporaryFolder(t);
  const options = { file: join(folder, 'v'), key: keyFile(folder) };
  const store = await Vault.create(options);
  t.is(await codeOf(() => InterceptionCa.load({ store })), 'VAULT_SECRET_MISSING');
  const made = await InterceptionCa.open({ store, commonName: 'Acme egress' });
  store.close();
  const again = await Vault.open(options);
  t.teardown(() => again.close());
  const found = await InterceptionCa.open({ store: again });
  t.is(found.certPem, made.certPem);
  t.is(found.commonName, 'Acme egress');
  t.deepEqual(again.list(), []);
  const leaf = new X509Certificate(found.leafFor('api.acme.test').certPem);
  t.true(leaf.checkIssued(new X509Certificate(made.certPem)));
  t.true(leaf.verify(new X509Certificate(made.certPem).publicKey));
});

test('open() gives gateways that start at once the same authority', async (t) => {
  const folder = temporaryFolder(t);
  const options = { file: join(folder, 'v'), key: keyFile(folder) };
  const stores = [await Vault.create(options), await Vault.open(options), await Vault.open(options)];
  t.teardown(() => stores.map((store) => store.close()));
  const opened = await Promise.all(stores.map((store) => InterceptionCa.open({ store })));
  t.is(new Set(opened.map((one) => one.fingerprint256)).size, 1);
});

test('load() refuses what is not a key with its own certificate, and one that has ended', async (t) => {
  const one = await packedCa();
  const other = await packedCa();
  const keyEnd = 2 + one.readUInt16BE(0);
  const crossed = Buffer.concat([one.subarray(0, keyEnd), other.subarray(2 + other.readUInt16BE(0))]);
  const leaf = new X509Certificate(ca.leafFor('api.acme.test').certPem).raw;
  const broken = [
    crossed,
    Buffer.concat([one.subarray(0, keyEnd), leaf]),
    Buffer.alloc(1),
    Buffer.alloc(200, 1),
    one.subarray(0, -1),
  ];
  for (const bytes of broken)
    t.is(await codeOf(() => InterceptionCa.load({ store: holding(bytes) })), 'VAULT_CA_CORRUPT');
  t.is(await codeOf(() => InterceptionCa.load({ store: holding(one) })), null);
  const now = () => Date.now() + CA_LIFETIME_MS + 1;
  t.is(await codeOf(() => InterceptionCa.load({ store: holding(one), now })), 'VAULT_CA_EXPIRED');
});

test('create() takes a common name of 1..64 characters', async (t) => {
  t.is((await InterceptionCa.create({ commonName: 'n'.repeat(64) })).commonName.length, 64);
  t.is(
    (await InterceptionCa.create({ commonName: 'Bücher, "Äcker" + Co/CN=x' })).commonName,
    'Bücher, "Äcker" + Co/CN=x',
  );
  for (const commonName of ['', 'n'.repeat(65), 'a\nCN=b', 'a\0b']) {
    t.is(await codeOf(() => InterceptionCa.create({ commonName })), 'VAULT_NAME_MALFORMED');
  }
});

test('bundlePem() puts the authority behind the bundle of the system', (t) => {
  t.is(ca.bundlePem(''), ca.certPem);
  t.is(ca.bundlePem('-----END CERTIFICATE-----'), `-----END CERTIFICATE-----\n${ca.certPem}`);
  t.is(ca.bundlePem('-----END CERTIFICATE-----\n\n'), `-----END CERTIFICATE-----\n${ca.certPem}`);
});

test('close() of an authority can be called twice and refuses new leaves', async (t) => {
  const own = await InterceptionCa.create();
  own.secureContextFor('api.acme.test');
  own.close();
  own.close();
  t.is(own.contextCount, 0);
  t.is(await codeOf(() => own.secureContextFor('api.acme.test')), 'VAULT_CLOSED');
});

function holding(bytes: Buffer): CaStore {
  const unseal = () => Buffer.from(bytes);
  return { seal: async () => {}, unseal, obtain: async () => unseal() };
}

/** What create() seals. */
async function packedCa(): Promise<Buffer> {
  let kept = Buffer.alloc(0);
  const seal = async (_purpose: string, _name: string, bytes: Buffer) => {
    kept = Buffer.from(bytes);
  };
  const unseal = () => {
    throw new VaultError('VAULT_SECRET_MISSING', 'nothing yet');
  };
  await InterceptionCa.create({ store: { seal, unseal, obtain: async (_purpose, _name, make) => make() } });
  return kept;
}
