/** BAD-INPUT rows T1, T2, T7, T8: upstreams that do not prove who they are. */
import { X509Certificate } from 'node:crypto';
import type { TLSSocket, TlsOptions } from 'node:tls';
import anyTest, { type TestFn } from 'ava';
import {
  createAuthority,
  expired,
  notYetValid,
  oldTlsOnly,
  selfSigned,
  type TestCertificate,
} from '../../kit/certificates.ts';
import { startTestGateway, type TestGateway } from '../../kit/gateway.ts';
import { askTunnel, type RawConnection } from '../../kit/raw-client.ts';
import { startUpstream, type Upstream } from '../../kit/upstream.ts';
import { request } from './stage.ts';

const test = anyTest as TestFn;

const authority = createAuthority();
const stranger = createAuthority('Unknown Authority');
const leaf = (name: string, options: object = {}): TlsOptions => pem(authority.issue({ names: [name], ...options }));
const pem = ({ certPem, keyPem }: TestCertificate): TlsOptions => ({ cert: certPem, key: keyPem });

/** Upstreams that must be refused: name, what it shows, OpenSSL's code in the reason. */
const wrong: Readonly<Record<string, { tls: TlsOptions; reason: RegExp }>> = {
  'self-signed.acme.test': { tls: pem(selfSigned(['self-signed.acme.test'])), reason: /SELF_SIGNED/ },
  'expired.acme.test': { tls: leaf('expired.acme.test', expired), reason: /CERT_HAS_EXPIRED/ },
  'early.acme.test': { tls: leaf('early.acme.test', notYetValid), reason: /CERT_NOT_YET_VALID/ },
  'other-name.acme.test': { tls: leaf('good.acme.test'), reason: /ALTNAME/ },
  'parent-name.acme.test': { tls: leaf('acme.test'), reason: /ALTNAME/ },
  'stranger.acme.test': { tls: pem(stranger.issue({ names: ['stranger.acme.test'] })), reason: /UNABLE_TO|ISSUER/ },
  'old.acme.test': { tls: { ...leaf('old.acme.test'), ...oldTlsOnly }, reason: /PROTOCOL|VERSION|ERR_SSL/ },
};

const clientCertificate: TlsOptions = { ca: authority.certPem, requestCert: true, rejectUnauthorized: true };
const good: Readonly<Record<string, TlsOptions>> = {
  'good.acme.test': leaf('good.acme.test'),
  'tls12.acme.test': { ...leaf('tls12.acme.test'), maxVersion: 'TLSv1.2' },
  'asks.acme.test': { ...leaf('asks.acme.test'), ...clientCertificate },
  'asks12.acme.test': { ...leaf('asks12.acme.test'), ...clientCertificate, maxVersion: 'TLSv1.2' },
};

const policy = `
version: 1
name: tls
rules:
  - name: all
    effect: allow
    hosts: ["*.acme.test"]
credentials:
  - name: token
    secret: env:TLS_TOKEN
    bind: { hosts: ["*.acme.test"], paths: ["/bound/**"] }
    inject: { header: Authorization, format: "Bearer {secret}" }
`;

const upstreams = new Map<string, Upstream>();
let gateway: TestGateway;

test.before(async () => {
  const all = [
    ...Object.entries(wrong).map(([name, { tls }]): [string, TlsOptions] => [name, tls]),
    ...Object.entries(good),
  ];
  for (const [name, tls] of all) upstreams.set(name, await startUpstream({ tls }));
  const pins = [...upstreams].map(([name, { port }]) => ({ name, port, ca: authority.certPem }));
  gateway = await startTestGateway({ policy, env: { TLS_TOKEN: 'tls-token-value-0123456789' }, upstreams: pins });
});

test.after.always(async () => {
  await gateway?.close();
  for (const upstream of upstreams.values()) await upstream.close();
});

async function tunnelTo(name: string): Promise<RawConnection> {
  const connection = await gateway.connect();
  const answer = await askTunnel(connection, `${name}:443`, gateway.authorization);
  if (answer.status !== 200) throw new Error(`CONNECT ${name}: ${answer.status}`);
  return connection;
}

async function ask(name: string, path: string) {
  const connection = await tunnelTo(name);
  const inner = await connection.startTls({ servername: name, ca: gateway.ca });
  try {
    return await inner.ask(request(`GET ${path} HTTP/1.1`, `Host: ${name}`));
  } finally {
    inner.close();
  }
}

for (const [name, { reason }] of Object.entries(wrong)) {
  test.serial(`T1 T2 nothing is sent to ${name}, twice asked`, async (t) => {
    for (const path of ['/bound/first', '/bound/second']) {
      const answer = await ask(name, path);
      t.is(answer.status, 502, answer.body.toString());
      const { error } = JSON.parse(answer.body.toString()) as {
        error: { code: string; reason: string; requestId: string };
      };
      t.is(error.code, 'upstream_tls_failed');
      t.regex(error.reason, reason);
      const record = await gateway.audit.find((line) => line.id === error.requestId);
      t.deepEqual([record.verdict, record.code], ['error', 'upstream_tls_failed']);
      t.false(record.text.includes('tls-token-value'));
    }
    const upstream = upstreams.get(name);
    t.deepEqual([upstream?.receivedBytes, upstream?.requests.length], [0, 0]);
  });
}

test.serial('T1 an environment that turns verification off changes nothing', async (t) => {
  // Node reads it for every connection that does not say otherwise.
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  t.teardown(() => {
    delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  });
  t.is((await ask('self-signed.acme.test', '/bound/x')).status, 502);
  t.is(upstreams.get('self-signed.acme.test')?.receivedBytes, 0);
});

test.serial('T1 a good certificate gets the request and its credential', async (t) => {
  t.is((await ask('good.acme.test', '/bound/good')).status, 200);
  t.true(
    upstreams.get('good.acme.test')?.requests.some((one) => one.rawHead.includes('Bearer tls-token-value-0123456789')),
  );
});

test.serial('T2 TLS 1.2 upstream is spoken to', async (t) => {
  t.is((await ask('tls12.acme.test', '/x')).status, 200);
});

for (const name of ['asks.acme.test', 'asks12.acme.test']) {
  test.serial(`T7 ${name}, which demands a client certificate, is 502 and no fallback`, async (t) => {
    const answer = await ask(name, '/x');
    t.is(answer.status, 502, answer.body.toString());
    t.is(upstreams.get(name)?.requests.length, 0);
  });
}

test.serial('T8 a host with a credential is intercepted although a wider rule matches it too', async (t) => {
  const connection = await tunnelTo('good.acme.test');
  const inner = await connection.startTls({ servername: 'good.acme.test', ca: gateway.ca });
  t.teardown(() => inner.close());
  t.is((inner.socket as TLSSocket).getPeerX509Certificate()?.checkIssued(new X509Certificate(gateway.ca)), true);
});

test.serial('T8 a policy with passthrough on a host with a credential is not loaded', async (t) => {
  const text = `${policy}`.replace(
    '    hosts: ["*.acme.test"]\ncred',
    '    hosts: ["*.acme.test"]\n    tls: passthrough\ncred',
  );
  t.regex(text, /passthrough/);
  const started = startTestGateway({ policy: text }).then((one) => one.close());
  t.is((await t.throwsAsync<Error & { code?: string }>(started))?.code, 'GATEWAY_POLICY_INVALID');
});
