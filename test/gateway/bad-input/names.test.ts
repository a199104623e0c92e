/** BAD-INPUT group H: names that disagree, hide something, or are no names. */
import anyTest, { type TestFn } from 'ava';
import { askTunnel } from '../../kit/raw-client.ts';
import {
  type AllowedCase,
  expectRefused,
  proxy,
  proxyRequest,
  type RefusedCase,
  request,
  testAllowed,
  testRefused,
  tunnel,
  useStage,
} from './stage.ts';

const test = anyTest as TestFn;

const policy = `
version: 1
name: names
rules:
  - name: read
    effect: allow
    hosts: [api.acme.test, other.acme.test]
    ports: [443, 8443]
    methods: [GET]
  - name: below
    effect: allow
    hosts: ["*.wild.acme.test"]
    methods: [GET]
  - { name: plain, effect: allow, scheme: http, hosts: [plain.acme.test], methods: [GET] }
credentials:
  - name: token
    secret: env:NAMES_TOKEN
    bind: { hosts: [api.acme.test], methods: [GET], ports: [443, 8443] }
    inject: { header: Authorization, format: "Bearer {secret}" }
`;

const stage = useStage(test, () => ({
  policy,
  env: { NAMES_TOKEN: 'names-token-value-0123456789' },
  tls: { 'api.acme.test': {}, 'other.acme.test': {}, 'sub.wild.acme.test': {}, 'wild.acme.test': {} },
  plain: { 'plain.acme.test': {} },
}));

const injected = { authorization: 'Bearer names-token-value-0123456789' };
const inApi = tunnel('api.acme.test:443');

const agreeing: readonly AllowedCase[] = [
  {
    title: 'H1 CONNECT, server name and Host that agree',
    via: inApi,
    send: request('GET /h1 HTTP/1.1', 'Host: api.acme.test'),
    upstream: 'api.acme.test',
    line: 'GET /h1 HTTP/1.1',
    headers: { host: 'api.acme.test', ...injected },
  },
  {
    title: 'H4 a hello without server name',
    via: tunnel('api.acme.test:443', { servername: null }),
    send: request('GET /h4 HTTP/1.1', 'Host: api.acme.test'),
    upstream: 'api.acme.test',
    line: 'GET /h4 HTTP/1.1',
    headers: injected,
  },
  {
    title: 'H5 an absolute target of the same authority',
    via: inApi,
    send: request('GET https://api.acme.test/h5?q=1 HTTP/1.1', 'Host: api.acme.test'),
    upstream: 'api.acme.test',
    line: 'GET /h5?q=1 HTTP/1.1',
    headers: injected,
  },
  {
    title: 'H6 an absolute target whose Host agrees',
    via: proxy,
    send: proxyRequest('GET http://plain.acme.test/h6 HTTP/1.1', 'Host: plain.acme.test'),
    upstream: 'plain.acme.test',
    line: 'GET /h6 HTTP/1.1',
    headers: { host: 'plain.acme.test', 'proxy-authorization': null },
  },
  {
    title: 'H8 the default port written out in Host',
    via: inApi,
    send: request('GET /h8 HTTP/1.1', 'Host: api.acme.test:443'),
    upstream: 'api.acme.test',
    line: 'GET /h8 HTTP/1.1',
    headers: { host: 'api.acme.test' },
  },
  {
    title: 'H8 the port of an 8443 tunnel in Host',
    via: tunnel('api.acme.test:8443'),
    send: request('GET /h8b HTTP/1.1', 'Host: api.acme.test:8443'),
    upstream: 'api.acme.test',
    line: 'GET /h8b HTTP/1.1',
    headers: { host: 'api.acme.test:8443' },
  },
  {
    title: 'H13 a trailing dot in CONNECT, server name and Host',
    via: tunnel('api.acme.test.:443', { servername: 'api.acme.test' }),
    send: request('GET /h13 HTTP/1.1', 'Host: api.acme.test.'),
    upstream: 'api.acme.test',
    line: 'GET /h13 HTTP/1.1',
    headers: { host: 'api.acme.test', ...injected },
  },
  {
    title: 'H14 mixed case everywhere',
    via: tunnel('API.acme.TEST:443', { servername: 'Api.Acme.Test' }),
    send: request('GET /h14 HTTP/1.1', 'hOST: aPI.ACME.test'),
    upstream: 'api.acme.test',
    line: 'GET /h14 HTTP/1.1',
    headers: { host: 'api.acme.test', ...injected },
  },
  {
    title: 'H18 a name below the wildcard',
    via: tunnel('sub.wild.acme.test:443'),
    send: request('GET /h18 HTTP/1.1', 'Host: sub.wild.acme.test'),
    upstream: 'sub.wild.acme.test',
    line: 'GET /h18 HTTP/1.1',
    headers: { authorization: null },
  },
];
testAllowed(test, stage, agreeing);

const inTunnel: readonly RefusedCase[] = [
  {
    title: 'H1 CONNECT A without server name, then Host B inside TLS',
    via: tunnel('api.acme.test:443', { servername: null }),
    send: request('GET / HTTP/1.1', 'Host: other.acme.test'),
    status: 421,
    code: 'authority_mismatch',
  },
  {
    title: 'H2 server name A, then Host B',
    via: inApi,
    send: request('GET / HTTP/1.1', 'Host: other.acme.test'),
    status: 421,
    code: 'authority_mismatch',
  },
  {
    title: 'H5 an absolute target of B inside CONNECT A',
    via: inApi,
    send: request('GET https://other.acme.test/x HTTP/1.1', 'Host: api.acme.test'),
    status: 421,
    code: 'authority_mismatch',
  },
  {
    title: 'H5 an absolute target of A with Host B',
    via: inApi,
    send: request('GET https://api.acme.test/x HTTP/1.1', 'Host: other.acme.test'),
    status: 421,
    code: 'authority_mismatch',
  },
  {
    title: 'H5 an absolute target of A over http inside TLS',
    via: inApi,
    send: request('GET http://api.acme.test/x HTTP/1.1', 'Host: api.acme.test'),
    status: 421,
    code: 'authority_mismatch',
  },
  {
    title: 'H8 Host with another port than CONNECT',
    via: inApi,
    send: request('GET / HTTP/1.1', 'Host: api.acme.test:8443'),
    status: 421,
    code: 'authority_mismatch',
  },
  {
    title: 'H8 the port left out on an 8443 tunnel',
    via: tunnel('api.acme.test:8443'),
    send: request('GET / HTTP/1.1', 'Host: api.acme.test'),
    status: 421,
    code: 'authority_mismatch',
  },
  ...hostLines(inApi),
];
testRefused(test, stage, inTunnel);

function hostLines(via: RefusedCase['via']): RefusedCase[] {
  const rows: [title: string, lines: string[], code: string][] = [
    ['H7 two Host lines that agree', ['Host: api.acme.test', 'Host: api.acme.test'], 'host_repeated'],
    ['H7 two Host lines, the second another', ['Host: api.acme.test', 'Host: other.acme.test'], 'host_repeated'],
    ['H7 no Host line', ['Accept: */*'], 'host_missing'],
    ['H7 an empty Host', ['Host:'], 'host_empty'],
    ['H7 a Host with a space', ['Host: api.acme.test other.acme.test'], 'host_malformed'],
    ['H7 a Host with a comma', ['Host: api.acme.test,other.acme.test'], 'host_malformed'],
    ['H9 a Host with userinfo', ['Host: api.acme.test@other.acme.test'], 'authority_userinfo'],
    ['H10 a Host with a backslash', ['Host: api.acme.test\\.other.acme.test'], 'host_malformed'],
    ['H10 a Host with a hash', ['Host: api.acme.test#other.acme.test'], 'host_malformed'],
    ['H10 a Host with a question mark', ['Host: api.acme.test?other.acme.test'], 'host_malformed'],
    ['H10 a Host with a slash', ['Host: api.acme.test/x'], 'host_malformed'],
    ['H10 a Host with a tab', ['Host: api.acme.test\tother.acme.test'], 'host_malformed'],
    ['H12 a Host with %2e', ['Host: api%2eacme.test'], 'host_malformed'],
    ['H15 a Host with a raw non-ASCII byte', ['Host: api.acm\u00e9.test'], 'host_not_ascii'],
  ];
  return rows.map(([title, lines, code]) => ({
    title,
    via,
    send: request('GET / HTTP/1.1', ...lines),
    status: 400,
    code,
  }));
}

const onProxy: readonly RefusedCase[] = [
  {
    title: 'H6 an absolute target with another Host',
    via: proxy,
    send: proxyRequest('GET http://plain.acme.test/ HTTP/1.1', 'Host: api.acme.test'),
    status: 400,
    code: 'host_mismatch',
  },
  {
    title: 'H9 userinfo in an absolute target',
    via: proxy,
    send: proxyRequest('GET http://plain.acme.test@evil.test/ HTTP/1.1', 'Host: evil.test'),
    status: 400,
    code: 'authority_userinfo',
  },
  {
    title: 'H10 a backslash before the at sign of an absolute target',
    via: proxy,
    send: proxyRequest('GET http://plain.acme.test\\@evil.test/ HTTP/1.1', 'Host: plain.acme.test'),
    status: 400,
    code: 'authority_userinfo',
  },
  {
    title: 'H10 a backslash for the slash of an absolute target',
    via: proxy,
    send: proxyRequest('GET http://plain.acme.test\\evil HTTP/1.1', 'Host: plain.acme.test'),
    status: 400,
    code: 'host_malformed',
  },
  {
    title: 'H10 a hash right behind the authority of an absolute target',
    via: proxy,
    send: proxyRequest('GET http://plain.acme.test#@evil.test/ HTTP/1.1', 'Host: plain.acme.test'),
    status: 400,
    code: 'target_fragment',
  },
];
testRefused(test, stage, onProxy);

test.serial('H3 CONNECT A with server name B is closed before a leaf for B exists', async (t) => {
  const here = stage();
  here.clear();
  const mark = await here.gateway.audit.mark();
  const connection = await here.open(t, proxy);
  t.is((await askTunnel(connection, 'api.acme.test:443', here.gateway.authorization)).status, 200);
  await t.throwsAsync(connection.startTls({ servername: 'other.acme.test' }));
  t.is(here.receivedBytes, 0);
  const record = await here.gateway.audit.find(
    (line) => line.kind === 'tls.handshake' && line.code === 'authority_mismatch',
    mark,
  );
  t.deepEqual([record.verdict, record.code, record.conn?.sni], ['deny', 'authority_mismatch', 'other.acme.test']);
  t.true(record.text.includes('api.acme.test'), record.text);
});

test.serial('H4 a server name that is an address is not believed: the CONNECT name counts', async (t) => {
  const here = stage();
  here.clear();
  const connection = await here.open(t, proxy);
  await askTunnel(connection, 'api.acme.test:443', here.gateway.authorization);
  // The certificate that comes back must be the one of the CONNECT name.
  const inner = await connection.startTls({
    servername: '10.0.0.1',
    ca: here.gateway.ca,
    options: {
      checkServerIdentity: (_name, certificate) =>
        certificate.subjectaltname === 'DNS:api.acme.test' ? undefined : new Error(certificate.subjectaltname),
    },
  });
  t.teardown(() => inner.close());
  t.is((await inner.ask(request('GET /h4 HTTP/1.1', 'Host: api.acme.test'))).status, 200);
});

test.serial('H1 the record of a mismatch names both hosts', async (t) => {
  const here = stage();
  here.clear();
  const connection = await here.open(t, inApi);
  const answer = await connection.ask(request('GET /both HTTP/1.1', 'Host: other.acme.test'));
  const record = await expectRefused(t, here, answer, { status: 421, code: 'authority_mismatch' });
  t.true(record.text.includes('api.acme.test') && record.text.includes('other.acme.test'), record.text);
});

test.serial('H1 a refused mismatch leaves the tunnel useless or judged anew, never open to B', async (t) => {
  const here = stage();
  here.clear();
  const connection = await here.open(t, inApi);
  await connection.ask(request('GET /first HTTP/1.1', 'Host: other.acme.test'));
  connection.write(request('GET /second HTTP/1.1', 'Host: other.acme.test'));
  const rest = await connection.readUntil('421').catch(() => 'closed');
  t.true(rest === 'closed' || rest.endsWith('421'));
  t.is(here.receivedBytes, 0);
});
