/** BAD-INPUT group C: ways to make a credential go where it must not, or come back. */
import anyTest, { type TestFn } from 'ava';
import { header } from '../../kit/http-message.ts';
import { respond } from '../../kit/replies.ts';
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

const secret = 'credential-value-0123456789abcdef';
const bearer = `Bearer ${secret}`;

const policy = `
version: 1
name: credentials
rules:
  - name: all
    effect: allow
    hosts: [api.acme.test, other.acme.test, replace.acme.test, keep.acme.test, broken.acme.test, key.acme.test, clear.acme.test]
  - { name: plain, effect: allow, scheme: http, hosts: [api.acme.test, plain.acme.test, clear.acme.test] }
credentials:
  - name: token
    secret: env:CRED_TOKEN
    bind: { hosts: [api.acme.test], methods: [GET], paths: ["/bound/**"] }
    inject: { header: Authorization, format: "Bearer {secret}" }
  - { name: replacing, secret: env:CRED_TOKEN, bind: { hosts: [replace.acme.test] }, inject: { header: Authorization, format: "Bearer {secret}" }, onClientCredential: replace }
  - { name: keeping, secret: env:CRED_TOKEN, bind: { hosts: [keep.acme.test] }, inject: { header: Authorization, format: "Bearer {secret}" }, onClientCredential: keep }
  - { name: key, secret: env:CRED_TOKEN, bind: { hosts: [key.acme.test] }, inject: { header: X-Api-Key, format: "{secret}" } }
  - { name: broken, secret: env:CRED_BROKEN, bind: { hosts: [broken.acme.test] }, inject: { header: Authorization, format: "Bearer {secret}" } }
  - name: clear
    secret: env:CRED_TOKEN
    bind: { hosts: [clear.acme.test], ports: [443, 80] }
    inject: { header: Authorization, format: "Bearer {secret}" }
    allowCleartext: true
`;

const names = ['api', 'other', 'replace', 'keep', 'broken', 'key'].map((name) => `${name}.acme.test`);
const stage = useStage(test, () => ({
  policy,
  env: { CRED_TOKEN: secret, CRED_BROKEN: `${secret}\r\nX-Smuggled: yes` },
  tls: Object.fromEntries(names.map((name) => [name, {}])),
  plain: { 'plain.acme.test': {}, 'clear.acme.test': {} },
}));

const inApi = tunnel('api.acme.test:443');
const host = 'Host: api.acme.test';
/** Has the shape of a placeholder, issued by nobody. */
const foreign = `sptph_${'0'.repeat(40)}`;

const refused: readonly RefusedCase[] = [
  {
    title: 'C1 a placeholder in a header to a host without credential',
    via: tunnel('other.acme.test:443'),
    send: request('GET / HTTP/1.1', 'Host: other.acme.test', `Authorization: Bearer ${foreign}`),
    status: 403,
    code: 'credential_mismatch',
  },
  {
    title: 'C1 a placeholder in any other header',
    via: tunnel('other.acme.test:443'),
    send: request('GET / HTTP/1.1', 'Host: other.acme.test', `X-Note: it is ${foreign}!`),
    status: 403,
    code: 'credential_mismatch',
  },
  {
    title: 'C1 a placeholder in the query',
    via: tunnel('other.acme.test:443'),
    send: request(`GET /?key=${foreign} HTTP/1.1`, 'Host: other.acme.test'),
    status: 403,
    code: 'credential_mismatch',
  },
  {
    title: 'C1 a placeholder in the path',
    via: tunnel('other.acme.test:443'),
    send: request(`GET /${foreign}/x HTTP/1.1`, 'Host: other.acme.test'),
    status: 403,
    code: 'credential_mismatch',
  },
  {
    title: 'C1 a placeholder inside Basic',
    via: tunnel('other.acme.test:443'),
    send: request('GET / HTTP/1.1', 'Host: other.acme.test', `Authorization: Basic ${btoa(`user:${foreign}`)}`),
    status: 403,
    code: 'credential_mismatch',
  },
  {
    title: 'C1 a placeholder that is not of this caller on the bound route',
    via: inApi,
    send: request('GET /bound/x HTTP/1.1', host, `Authorization: Bearer ${foreign}`),
    status: 403,
    code: 'credential_mismatch',
  },
  {
    title: 'C1 a placeholder on a path the credential is not bound to',
    via: inApi,
    send: request('GET /free/x HTTP/1.1', host, `Authorization: Bearer ${foreign}`),
    status: 403,
    code: 'credential_mismatch',
  },
  {
    title: "C3 the client's own Authorization on a bound route",
    via: inApi,
    send: request('GET /bound/x HTTP/1.1', host, 'Authorization: Bearer mine'),
    status: 403,
    code: 'client_credential_refused',
  },
  {
    title: 'C3 two Authorization lines on a bound route',
    via: inApi,
    send: request('GET /bound/x HTTP/1.1', host, 'Authorization: Bearer mine', 'aUTHORIZATION: Bearer two'),
    status: 403,
    code: 'client_credential_refused',
  },
  {
    title: 'C3 an empty Authorization on a bound route',
    via: inApi,
    send: request('GET /bound/x HTTP/1.1', host, 'Authorization:'),
    status: 403,
    code: 'client_credential_refused',
  },
  {
    title: "C3 the client's own value in another slot",
    via: tunnel('key.acme.test:443'),
    send: request('GET / HTTP/1.1', 'Host: key.acme.test', 'x-API-key: mine'),
    status: 403,
    code: 'client_credential_refused',
  },
  {
    title: "C3 the client's own value in a slot spelled with an underscore",
    via: tunnel('key.acme.test:443'),
    send: request('GET / HTTP/1.1', 'Host: key.acme.test', 'X_Api_Key: mine'),
    status: 403,
    code: 'client_credential_refused',
  },
  ...[
    ['', 'GET http://api.acme.test/bound/x HTTP/1.1', 'Host: api.acme.test'],
    [' in another spelling', 'GET http://API.acme.test./x/../%62ound/x HTTP/1.1', 'Host: API.acme.test.'],
  ].map(
    ([spelling, ...lines]): RefusedCase => ({
      title: `C11 plain http to a bound route${spelling}`,
      via: proxy,
      send: proxyRequest(...lines),
      status: 403,
      code: 'cleartext_credential',
    }),
  ),
  {
    title: 'C7 a secret with CR LF',
    via: tunnel('broken.acme.test:443'),
    send: request('GET / HTTP/1.1', 'Host: broken.acme.test'),
    status: 503,
    code: 'credential_unavailable',
  },
];
testRefused(test, stage, refused);

const allowed: readonly AllowedCase[] = [
  {
    title: 'C3 the bound route without a value of the client',
    via: inApi,
    send: request('GET /bound/x HTTP/1.1', host),
    upstream: 'api.acme.test',
    line: 'GET /bound/x HTTP/1.1',
    headers: { authorization: bearer },
  },
  {
    title: 'C3 with onClientCredential replace the value of the client, replaced,',
    via: tunnel('replace.acme.test:443'),
    send: request('GET / HTTP/1.1', 'Host: replace.acme.test', 'Authorization: Bearer mine'),
    upstream: 'replace.acme.test',
    line: 'GET / HTTP/1.1',
    headers: { authorization: bearer },
  },
  {
    title: 'C3 with onClientCredential keep the value of the client, kept,',
    via: tunnel('keep.acme.test:443'),
    send: request('GET / HTTP/1.1', 'Host: keep.acme.test', 'Authorization: Bearer mine'),
    upstream: 'keep.acme.test',
    line: 'GET / HTTP/1.1',
    headers: { authorization: 'Bearer mine' },
  },
  {
    title: 'C3 another path of the host, without injection,',
    via: inApi,
    send: request('GET /free/x HTTP/1.1', host, 'Authorization: Bearer mine'),
    upstream: 'api.acme.test',
    line: 'GET /free/x HTTP/1.1',
    headers: { authorization: 'Bearer mine' },
  },
  {
    title: 'C3 another method of the bound path, without injection,',
    via: inApi,
    send: request('DELETE /bound/x HTTP/1.1', host),
    upstream: 'api.acme.test',
    line: 'DELETE /bound/x HTTP/1.1',
    headers: { authorization: null },
  },
  {
    title: 'C1 a placeholder in a body, which is never rewritten,',
    via: tunnel('other.acme.test:443'),
    send: `${request('POST / HTTP/1.1', 'Host: other.acme.test', `Content-Length: ${foreign.length}`)}${foreign}`,
    upstream: 'other.acme.test',
    line: 'POST / HTTP/1.1',
  },
  {
    title: 'C11 with allowCleartext a bound route over http',
    via: proxy,
    send: proxyRequest('GET http://clear.acme.test/x HTTP/1.1', 'Host: clear.acme.test'),
    upstream: 'clear.acme.test',
    line: 'GET /x HTTP/1.1',
    headers: { authorization: bearer },
  },
  {
    title: 'C15 headers that only a gateway may add, dropped,',
    via: proxy,
    send: proxyRequest(
      'GET http://plain.acme.test/x HTTP/1.1',
      'Host: plain.acme.test',
      'Proxy-Connection: keep-alive',
      'X-Forwarded-For: 10.0.0.1',
      'X-Forwarded-Host: evil.test',
      'Forwarded: for=10.0.0.1',
      'X-Real-IP: 10.0.0.1',
      'X_Forwarded_For: 10.0.0.1',
      'X-Sallyport-Request-Id: forged',
      'X-Kept: 1',
    ),
    upstream: 'plain.acme.test',
    line: 'GET /x HTTP/1.1',
    headers: {
      'proxy-authorization': null,
      'proxy-connection': null,
      'x-forwarded-for': null,
      'x-forwarded-host': null,
      forwarded: null,
      'x-real-ip': null,
      x_forwarded_for: null,
      'x-sallyport-request-id': null,
      via: null,
      'x-kept': '1',
    },
  },
  {
    title: 'C15 a Proxy-Authorization inside the tunnel, dropped,',
    via: inApi,
    send: request('GET /free/x HTTP/1.1', host, 'Proxy-Authorization: Basic eDp5', 'Proxy_Authorization: Basic eDp5'),
    upstream: 'api.acme.test',
    line: 'GET /free/x HTTP/1.1',
    headers: { 'proxy-authorization': null, proxy_authorization: null },
  },
];
testAllowed(test, stage, allowed);

test.serial('C6 a redirect off the bound host is passed on, and what follows it carries no credential', async (t) => {
  const here = stage();
  here.clear();
  for (const location of ['https://other.acme.test/', 'http://169.254.169.254/latest', 'http://plain.acme.test/']) {
    here.upstream('api.acme.test').route('/bound/moved', respond({ status: 307, headers: { location } }));
    const connection = await here.open(t, inApi);
    const moved = await connection.ask(request('GET /bound/moved HTTP/1.1', host));
    t.deepEqual([moved.status, header(moved.headers, 'location')], [307, location]);
  }
  t.is(here.upstream('other.acme.test').receivedBytes + here.upstream('plain.acme.test').receivedBytes, 0);
  const other = await here.open(t, tunnel('other.acme.test:443'));
  t.is((await other.ask(request('GET / HTTP/1.1', 'Host: other.acme.test'))).status, 200);
  t.false(here.upstream('other.acme.test').requests[0]?.rawHead.includes(secret));
  const plain = await here.open(t, proxy);
  await plain.ask(here.expand(proxyRequest('GET http://plain.acme.test/ HTTP/1.1', 'Host: plain.acme.test')));
  t.false(here.upstream('plain.acme.test').requests[0]?.rawHead.includes(secret));
  here.clear();
  const metadata = await here.open(t, proxy);
  const answer = await metadata.ask(
    here.expand(proxyRequest('GET http://169.254.169.254/latest HTTP/1.1', 'Host: 169.254.169.254')),
  );
  await expectRefused(t, here, answer, { status: 403, code: 'never_list' });
});

test.serial('C4 an injected value that comes back is masked, in head and body', async (t) => {
  const here = stage();
  here.clear();
  const connection = await here.open(t, inApi);
  here
    .upstream('api.acme.test')
    .route('/bound/mirror', respond({ headers: { 'x-mirror': bearer }, body: `<p>${secret}</p>` }));
  const answer = await connection.ask(request('GET /bound/mirror HTTP/1.1', host));
  t.is(answer.status, 200);
  t.false(`${answer.rawHead}${answer.body.toString()}`.includes(secret));
  const record = await here.gateway.audit.find((line) => line.request?.path === '/bound/mirror');
  t.true((record.redactions ?? 0) >= 2);
});
