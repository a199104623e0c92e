/** BAD-INPUT row S2, and who may ask at all. */
import anyTest, { type TestFn } from 'ava';
import { proxyAuthorization } from '../../kit/raw-client.ts';
import { auth, expectRefused, proxy, proxyRequest, type RefusedCase, request, testRefused, useStage } from './stage.ts';

const test = anyTest as TestFn;

const policy = `
version: 1
name: connect
rules:
  - name: read
    effect: allow
    hosts: [api.acme.test]
  - name: plain
    effect: allow
    scheme: http
    hosts: [plain.acme.test]
`;

const stage = useStage(test, () => ({ policy, tls: { 'api.acme.test': {} }, plain: { 'plain.acme.test': {} } }));

const connect = (authority: string, ...lines: readonly string[]): string =>
  `CONNECT ${authority} HTTP/1.1\r\nHost: api.acme.test:443\r\n${lines.map((line) => `${line}\r\n`).join('')}${auth}\r\n`;

const targets: readonly [title: string, authority: string, status: number, code: string][] = [
  ['S2 no port', 'api.acme.test', 400, 'authority_port_missing'],
  ['S2 an empty port', 'api.acme.test:', 400, 'authority_port'],
  ['S2 port 0', 'api.acme.test:0', 400, 'authority_port'],
  ['S2 port 65536', 'api.acme.test:65536', 400, 'authority_port'],
  ['S2 a port with a sign', 'api.acme.test:+443', 400, 'authority_port'],
  ['S2 a port in hex', 'api.acme.test:0x1bb', 400, 'authority_port'],
  ['S2 two ports', 'api.acme.test:443:443', 400, 'authority_port'],
  ['S2 no host', ':443', 400, 'host_empty'],
  ['S2 a path behind the port', 'api.acme.test:443/x', 400, 'authority_port'],
  ['S2 [::1]:22', '[::1]:22', 403, 'never_list'],
  ['S2 ::1:22 without brackets', '::1:22', 400, 'host_empty'],
  ['S2 an unclosed bracket', '[::1:443', 400, 'host_ipv6'],
  ['S2 a port no rule names', 'api.acme.test:22', 403, 'default_denied'],
  ['S2 an absolute URL', 'https://api.acme.test/', 400, 'authority_port'],
];
const refused: readonly RefusedCase[] = [
  ...targets.map(([title, authority, status, code]) => ({
    title,
    via: proxy,
    send: connect(authority).replace('Host: api.acme.test:443\r\n', `Host: ${authority}\r\n`),
    status,
    code,
  })),
  {
    title: 'S2 CONNECT with Content-Length',
    via: proxy,
    send: `${connect('api.acme.test:443', 'Content-Length: 4')}body`,
    status: 400,
    code: 'connect_body',
    closes: true,
  },
  {
    title: 'S2 CONNECT with a chunked body',
    via: proxy,
    send: `${connect('api.acme.test:443', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
    status: 400,
    code: 'connect_body',
    closes: true,
  },
  {
    title: 'S2 CONNECT whose Host names another',
    via: proxy,
    send: connect('other.acme.test:443'),
    status: 400,
    code: 'host_mismatch',
  },
  {
    title: 'S2 an origin-form request to the proxy itself',
    via: proxy,
    send: proxyRequest('GET / HTTP/1.1', 'Host: plain.acme.test'),
    status: 400,
    code: 'not_a_proxy_request',
  },
  {
    title: 'S2 an https URL without CONNECT',
    via: proxy,
    send: proxyRequest('GET https://api.acme.test/ HTTP/1.1', 'Host: api.acme.test'),
    status: 400,
    code: 'https_needs_connect',
  },
  {
    title: 'S2 a file URL',
    via: proxy,
    send: proxyRequest('GET file:///etc/passwd HTTP/1.1', 'Host: plain.acme.test'),
    status: 400,
    code: 'scheme_unknown',
  },
  {
    title: 'S2 an ftp URL',
    via: proxy,
    send: proxyRequest('GET ftp://plain.acme.test/x HTTP/1.1', 'Host: plain.acme.test'),
    status: 400,
    code: 'scheme_unknown',
  },
  {
    title: 'S2 no credential',
    via: proxy,
    send: request('CONNECT api.acme.test:443 HTTP/1.1', 'Host: api.acme.test:443'),
    status: 407,
    code: 'caller_unknown',
  },
];
testRefused(test, stage, refused);

const credentials: readonly [title: string, line: (id: string, token: string) => string][] = [
  ['a wrong password', (id, token) => proxyAuthorization(id, `${token}x`)],
  ['an empty password', (id) => proxyAuthorization(id, '')],
  ['an unknown caller', (_id, token) => proxyAuthorization('nobody', token)],
  ['a Bearer credential', (_id, token) => `Proxy-Authorization: Bearer ${token}\r\n`],
  ['Authorization instead of Proxy-Authorization', (id, token) => proxyAuthorization(id, token).replace('Proxy-', '')],
  ['an id of another case', (id, token) => proxyAuthorization(id.toUpperCase(), token)],
];
for (const [title, line] of credentials) {
  test.serial(`S2 ${title} is refused with 407 on CONNECT and on an absolute URL`, async (t) => {
    const here = stage();
    here.clear();
    const { id, token } = here.gateway.caller;
    for (const start of [
      'CONNECT api.acme.test:443 HTTP/1.1\r\nHost: api.acme.test:443',
      'GET http://plain.acme.test/ HTTP/1.1\r\nHost: plain.acme.test',
    ]) {
      const connection = await here.open(t, proxy);
      connection.write(`${start}\r\n${line(id, token)}\r\n`);
      await expectRefused(t, here, await connection.readResponse(), { status: 407, code: 'caller_unknown' });
    }
  });
}

test.serial('S2 a 407 leaves the connection open for the same request with a credential', async (t) => {
  const here = stage();
  here.clear();
  const connection = await here.open(t, proxy);
  t.is((await connection.ask(request('GET http://plain.acme.test/ HTTP/1.1', 'Host: plain.acme.test'))).status, 407);
  const again = await connection.ask(
    here.expand(proxyRequest('GET http://plain.acme.test/ HTTP/1.1', 'Host: plain.acme.test')),
  );
  t.is(again.status, 200);
});

test.serial('S2 a credential counts for its own request only', async (t) => {
  const here = stage();
  here.clear();
  const connection = await here.open(t, proxy);
  const first = await connection.ask(
    here.expand(proxyRequest('GET http://plain.acme.test/ HTTP/1.1', 'Host: plain.acme.test')),
  );
  t.is(first.status, 200);
  here.clear();
  const second = await connection.ask(request('GET http://plain.acme.test/ HTTP/1.1', 'Host: plain.acme.test'));
  await expectRefused(t, here, second, { status: 407, code: 'caller_unknown' });
});

test.serial('S2 raw bytes of another protocol on a tunnel end it', async (t) => {
  const here = stage();
  here.clear();
  const connection = await here.open(t, { kind: 'tunnel', authority: 'api.acme.test:443', plain: true });
  const mark = await here.gateway.audit.mark();
  connection.write(Buffer.of(0, 1, 2, 3));
  await connection.readToClose();
  t.is(here.receivedBytes, 0);
  t.not((await here.gateway.audit.find((line) => line.code === 'protocol_refused', mark)).verdict, 'allow');
});

test.serial('S2 plain HTTP on a tunnel to an https host is not forwarded in the clear', async (t) => {
  const here = stage();
  here.clear();
  const connection = await here.open(t, { kind: 'tunnel', authority: 'api.acme.test:443', plain: true });
  const answer = await connection.ask(request('GET /x HTTP/1.1', 'Host: api.acme.test:443'));
  await expectRefused(t, here, answer, { status: 403, code: 'default_denied' });
});
