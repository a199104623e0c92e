import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, isIP } from 'node:net';
import { join } from 'node:path';
import { type ConnectionOptions, checkServerIdentity, connect, type SecureContext, TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { InterceptionCa } from '../../vault/index.ts';
import { command, testNeeding } from '../kit/require-system.ts';
import { temporaryFolder } from './fixture.ts';

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
    // An empty subject is undefined up to Node 22 and '' from 24 on, whatever the declared type says.
    const subject: string | undefined = new X509Certificate(ca.leafFor(destination).certPem).subject;
    t.is((subject ?? '') === '', isCritical);
  }
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

function temporaryPem(t: ExecutionContext, leafPem: string): { authority: string; leaf: string } {
  const folder = temporaryFolder(t);
  const paths = { authority: join(folder, 'ca.pem'), leaf: join(folder, 'leaf.pem') };
  writeFileSync(paths.authority, ca.certPem);
  writeFileSync(paths.leaf, leafPem);
  return paths;
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
