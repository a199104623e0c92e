import { X509Certificate } from 'node:crypto';
import test from 'ava';
import { createAuthority, expired, notYetValid, oldTlsOnly, selfSigned, type TestCertificate } from './certificates.ts';
import { connectRaw } from './raw-client.ts';
import { startUpstream } from './upstream.ts';

const authority = createAuthority();
const other = createAuthority('Other Authority');

test('createAuthority() makes a certificate that OpenSSL accepts as an authority', (t) => {
  const certificate = new X509Certificate(authority.certPem);
  t.true(certificate.ca);
  t.true(certificate.verify(certificate.publicKey));
});

const leaf = (options: object) => authority.issue({ names: ['api.acme.test'], ...options });
const cases: readonly [name: string, certificate: TestCertificate, code: string | null][] = [
  ['good', leaf({}), null],
  ['expired', leaf(expired), 'CERT_HAS_EXPIRED'],
  ['not yet valid', leaf(notYetValid), 'CERT_NOT_YET_VALID'],
  ['wrong name', authority.issue({ names: ['other.acme.test'] }), 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ['self-signed', selfSigned(['api.acme.test']), 'DEPTH_ZERO_SELF_SIGNED_CERT'],
  ['unknown authority', other.issue({ names: ['api.acme.test'] }), 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
];

for (const [name, certificate, code] of cases) {
  test(`a client that checks sees ${code ?? 'nothing wrong'} when the leaf is ${name}`, async (t) => {
    const upstream = await startUpstream({ tls: { cert: certificate.certPem, key: certificate.keyPem } });
    t.teardown(() => upstream.close());
    const raw = await connectRaw({ port: upstream.port });
    t.teardown(() => raw.close());
    const started = raw.startTls({ servername: 'api.acme.test', ca: authority.certPem });
    if (code === null) {
      const inner = await started;
      t.is((await inner.ask('GET / HTTP/1.1\r\nHost: api.acme.test\r\n\r\n')).status, 200);
      t.is(upstream.requests[0]?.sni, 'api.acme.test');
      return;
    }
    t.is((await t.throwsAsync<NodeJS.ErrnoException>(started))?.code, code);
    t.is(upstream.receivedBytes, 0);
  });
}

test('oldTlsOnly refuses a client that asks for TLS 1.2 and takes one that speaks 1.1', async (t) => {
  const good = leaf({});
  const upstream = await startUpstream({ tls: { cert: good.certPem, key: good.keyPem, ...oldTlsOnly } });
  t.teardown(() => upstream.close());
  const modern = await connectRaw({ port: upstream.port });
  await t.throwsAsync(modern.startTls({ servername: 'api.acme.test', ca: authority.certPem }));
  const old = await connectRaw({ port: upstream.port });
  const inner = await old.startTls({ servername: 'api.acme.test', ca: authority.certPem, options: oldTlsOnly });
  t.teardown(() => inner.close());
  t.is((await inner.ask('GET / HTTP/1.1\r\n\r\n')).status, 200);
});

test('a server that demands a client certificate refuses a client without one', async (t) => {
  const good = leaf({});
  const upstream = await startUpstream({
    tls: { cert: good.certPem, key: good.keyPem, ca: authority.certPem, requestCert: true, rejectUnauthorized: true },
  });
  t.teardown(() => upstream.close());
  const raw = await connectRaw({ port: upstream.port });
  const inner = await raw.startTls({ servername: 'api.acme.test', ca: authority.certPem });
  t.teardown(() => inner.close());
  inner.write('GET / HTTP/1.1\r\n\r\n');
  await inner.readToClose();
  t.is(inner.error?.code, 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED');
  t.is(upstream.requests.length, 0);
});
