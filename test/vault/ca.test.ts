import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, isIP } from 'node:net';
import { join } from 'node:path';
import { type ConnectionOptions, checkServerIdentity, connect, type SecureContext, TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { BACKDATE_MS, CA_LIFETIME_MS, type CaStore, LEAF_RENEW_BEFORE_MS } from '../../vault/ca.ts';
import { InterceptionCa, LEAF_LIFETIME_MS, MAX_SECURE_CONTEXTS, Vault, VaultError } from '../../vault/index.ts';
import { command, testNeeding } from '../kit/require-system.ts';
import { codeOf, fixedNow, keyFile, temporaryFolder } from './fixture.ts';

const run = promisify(execFile);
const longName = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`;
const destinations = [
  'api.acme.test',
  'xn--bcher-kva.example',
  '_dmarc.acme.test',
  'localhost',
  `${'n'.repeat(59)}.test`,
  `${'n'.repeat(60)}.test`,
  longName,
  '127.0.0.1',
  '::1',
  '2001:db8::1',
  '2001:db8:1:2:3:4:5:6',
  'fe80::',
];

const ca = await InterceptionCa.create();

function temporaryPem(t: ExecutionContext, leafPem: string): { authority: string; leaf: string } {
  const folder = temporaryFolder(t);
  const paths = { authority: join(folder, 'ca.pem'), leaf: join(folder, 'leaf.pem') };
  writeFileSync(paths.authority, ca.certPem);
  writeFileSync(paths.leaf, leafPem);
  return paths;
}

for (const destination of destinations) {
  const label = `${destination.slice(0, 24)} (${destination.length})`;

  testNeeding(command('openssl'))(
    `openssl verify -x509_strict takes the leaf for ${label} and for nothing else`,
    async (t) => {
      const { authority, leaf } = temporaryPem(t, ca.leafFor(destination).certPem);
      const verify = (kind: string, name: string) =>
        run('openssl', [
          'verify',
          '-x509_strict',
          '-purpose',
          'sslserver',
          '-CAfile',
          authority,
          `-verify_${kind}`,
          name,
          leaf,
        ]);
      const kind = isIP(destination) === 0 ? 'hostname' : 'ip';
      t.regex((await verify(kind, destination)).stdout, /: OK/);
      await t.throwsAsync(verify('hostname', 'b.acme.test'), { message: /hostname mismatch/i });
      await t.throwsAsync(verify('ip', '127.0.0.2'), { message: /IP address mismatch/i });
    },
  );

  test(`a Node client takes the leaf for ${label} and for nothing else`, async (t) => {
    const port = await serve(t, () => ca.secureContextFor(destination));
    const name = isIP(destination) === 0 ? { servername: destination } : {};
    const options = { port, host: '127.0.0.1', ca: ca.certPem, ...name };
    const checked = isIP(destination) === 0 ? {} : { checkServerIdentity: identityOf(destination) };
    t.true(await isAccepted({ ...options, ...checked }));
    t.false(await isAccepted({ ...options, servername: 'b.acme.test' }));
  });
}

const pythonClient = `
import socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[1])
context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
with socket.create_connection(("127.0.0.1", int(sys.argv[2]))) as raw:
    with context.wrap_socket(raw, server_hostname=sys.argv[3]) as tls:
        print(tls.version())
`;

for (const destination of ['api.acme.test', longName, '127.0.0.1', '2001:db8::1']) {
  testNeeding(command('python3'))(`Python takes the leaf for ${destination.slice(0, 24)} in strict mode`, async (t) => {
    const { authority } = temporaryPem(t, '');
    const port = await serve(t, () => ca.secureContextFor(destination));
    const { stdout } = await run('python3', ['-c', pythonClient, authority, String(port), destination]);
    t.is(stdout.trim(), 'TLSv1.3');
    const wrong = run('python3', ['-c', pythonClient, authority, String(port), 'b.acme.test']);
    await t.throwsAsync(wrong, { message: /CERTIFICATE_VERIFY_FAILED/ });
  });
}

testNeeding(command('curl'))('curl takes the leaf and refuses it without the authority', async (t) => {
  const { authority } = temporaryPem(t, '');
  const port = await serve(t, () => ca.secureContextFor('api.acme.test'));
  const curl = (...options: string[]) =>
    run('curl', [
      '-sS',
      '--noproxy',
      '*',
      '--resolve',
      `api.acme.test:${port}:127.0.0.1`,
      ...options,
      `https://api.acme.test:${port}/`,
    ]);
  t.is((await curl('--cacert', authority)).stdout, 'ok');
  await t.throwsAsync(curl(), { code: 60 });
});

testNeeding(command('openssl'))('openssl verify -x509_strict takes the authority itself', async (t) => {
  const { authority } = temporaryPem(t, '');
  t.regex(
    (await run('openssl', ['verify', '-x509_strict', '-check_ss_sig', '-CAfile', authority, authority])).stdout,
    /OK/,
  );
  const text = (await run('openssl', ['x509', '-in', authority, '-noout', '-text'])).stdout;
  t.regex(text, /Basic Constraints: critical\s+CA:TRUE, pathlen:0/);
  t.regex(text, /Key Usage: critical\s+Certificate Sign, CRL Sign/);
  t.regex(text, /Subject Key Identifier/);
  t.regex(
    (await run('openssl', ['x509', '-in', authority, '-noout', '-fingerprint', '-sha256'])).stdout,
    new RegExp(ca.fingerprint256),
  );
});

testNeeding(command('openssl'))('the SAN of a leaf is critical only when its subject is empty', async (t) => {
  for (const [destination, isCritical] of [
    ['api.acme.test', false],
    [longName, true],
  ] as const) {
    const { leaf } = temporaryPem(t, ca.leafFor(destination).certPem);
    const text = (await run('openssl', ['x509', '-in', leaf, '-noout', '-text'])).stdout;
    t.is(/Subject Alternative Name: critical/.test(text), isCritical);
    t.is(new X509Certificate(ca.leafFor(destination).certPem).subject === undefined, isCritical);
  }
});

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

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`a client resumes its ${version} session on a later connection`, async (t) => {
    // Two hosts, two contexts: what resumes is the shared ticket key.
    const port = await serve(t, (at) => ca.secureContextFor(at === 0 ? 'api.acme.test' : 'b.acme.test'));
    const options = { port, host: '127.0.0.1', servername: 'api.acme.test', ca: ca.certPem, maxVersion: version };
    const first = connect(options);
    const [session]: Buffer[] = await once(first, 'session');
    t.false(first.isSessionReused());
    first.destroy();
    const second = connect({ ...options, ...(session === undefined ? {} : { session }) });
    await once(second, 'secureConnect');
    t.true(second.isSessionReused());
    second.destroy();
  });
}

test('a client that speaks no more than TLS 1.1 is refused', async (t) => {
  const port = await serve(t, () => ca.secureContextFor('api.acme.test'));
  const options = { port, host: '127.0.0.1', servername: 'api.acme.test', ca: ca.certPem };
  t.false(await isAccepted({ ...options, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }));
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
  return { seal: async () => {}, unseal: () => Buffer.from(bytes) };
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
  await InterceptionCa.create({ store: { seal, unseal } });
  return kept;
}

/** A TLS server on loopback as the data path builds it: the context is chosen before the handshake. Answers any request with `ok`. */
async function serve(t: ExecutionContext, contextOf: (connection: number) => SecureContext): Promise<number> {
  const sockets = new Set<TLSSocket>();
  const server = createServer((raw) => {
    const socket = new TLSSocket(raw, { isServer: true, secureContext: contextOf(sockets.size) });
    sockets.add(socket);
    // A client that refuses the certificate breaks the connection; the test looks at the client.
    socket.on('error', () => socket.destroy());
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  // A listening TCP server has an AddressInfo.
  return (server.address() as AddressInfo).port;
}

async function isAccepted(options: ConnectionOptions): Promise<boolean> {
  const socket = connect(options);
  try {
    await once(socket, 'secureConnect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Node checks the host it dialled; here the leaf is for another address than loopback. */
function identityOf(address: string): ConnectionOptions['checkServerIdentity'] {
  return (asked, certificate) => checkServerIdentity(asked === '127.0.0.1' ? address : asked, certificate);
}
