/** What `decide` and `decideConnect` answer: every allow with a deny twin. */

import test from 'ava';
import { type Destination, decide, decideConnect } from '../../policy/index.ts';
import { policyOf, rule } from './documents.ts';
import { facts, shown } from './requests.ts';

/** Request, then `verdict code rule`; `-` for no rule. */
type Row = readonly [request: string, wanted: string];

const agent = policyOf(
  [
    rule({
      name: 'github-read',
      hosts: ['api.github.com'],
      methods: ['GET'],
      paths: ['/repos/acme/**', '/orgs/acme/**'],
    }),
    rule({
      name: 'npm',
      hosts: ['registry.npmjs.org'],
      methods: ['GET'],
      paths: ['/*', '/@*/*', '/*/-/*.tgz'],
      encodedSlash: true,
    }),
    rule({
      name: 'git',
      hosts: ['github.com'],
      methods: ['GET'],
      paths: ['/acme/*/info/refs'],
      query: { service: 'git-upload-pack' },
    }),
    rule({ name: 'wild', hosts: ['*.example.com'] }),
    rule({ name: 'wild-8443', hosts: ['*.example.com'], ports: [8443] }),
    rule({ name: 'plain', hosts: ['plain.example.net'], scheme: 'http' }),
    rule({ name: 'any-method', hosts: ['odd.example.net'], methods: ['*'] }),
    rule({ name: 'report-only', hosts: ['dav.example.net'], methods: ['REPORT', 'brew'] }),
    rule({ name: 'address', cidrs: ['140.82.112.0/20', '2606:4700::/32', '10.1.2.0/24'] }),
    rule({ name: 'meta', hosts: ['metadata.google.internal'], cidrs: ['169.254.169.254/32'] }),
    rule({ name: 'pay', effect: 'ask', hosts: ['pay.example.com'], methods: ['POST'] }),
    rule({
      name: 'no-deletes',
      effect: 'deny',
      hosts: ['**'],
      methods: ['DELETE'],
      reason: 'Nothing an agent does may delete.',
    }),
    rule({ name: 'no-secret', effect: 'deny', hosts: ['*.example.com'], paths: ['/repos/acme/secret/**', '/admin'] }),
    rule({ name: 'no-token', effect: 'deny', hosts: ['a.example.com'], query: { token: 'x*' } }),
    rule({ name: 'no-cleartext', effect: 'deny', hosts: ['c.example.com'], scheme: 'http' }),
    rule({ name: 'no-block', effect: 'deny', cidrs: ['140.82.113.0/24'] }),
  ],
  { name: 'coding-agent', allowPrivate: ['10.1.0.0/16'] },
);

table('decide() judges hosts, ports and schemes', [
  ['GET https://api.github.com/repos/acme/site', 'allow allowed github-read'],
  ['GET https://API.GITHUB.COM./repos/acme/site', 'allow allowed github-read'],
  ['GET https://api.github.com.evil.com/repos/acme/site', 'deny default_denied -'],
  ['GET https://api.github.com:8443/repos/acme/site', 'deny default_denied -'],
  ['GET http://api.github.com/repos/acme/site', 'deny default_denied -'],
  ['GET http://api.github.com:443/repos/acme/site', 'deny default_denied -'],
  ['GET https://a.example.com/', 'allow allowed wild'],
  ['GET https://a.b.example.com/', 'allow allowed wild'],
  ['GET https://example.com/', 'deny default_denied -'],
  ['GET https://evilexample.com/', 'deny default_denied -'],
  ['GET https://a.example.com:8443/', 'allow allowed wild-8443'],
  ['GET https://a.example.com:8444/', 'deny default_denied -'],
  ['GET http://plain.example.net/', 'allow allowed plain'],
  ['GET https://plain.example.net/', 'deny default_denied -'],
  ['GET http://plain.example.net:8080/', 'deny default_denied -'],
]);

table('decide() judges methods', [
  ['HEAD https://api.github.com/repos/acme/site', 'allow allowed github-read'],
  ['OPTIONS https://api.github.com/repos/acme/site', 'deny default_denied -'],
  ['POST https://api.github.com/repos/acme/site', 'deny default_denied -'],
  ['get https://api.github.com/repos/acme/site', 'deny default_denied -'],
  ['PROPFIND https://a.example.com/', 'allow allowed wild'],
  ['OPTIONS https://a.example.com/', 'allow allowed wild'],
  ['TRACE https://a.example.com/', 'deny default_denied -'],
  ['GETX https://a.example.com/', 'deny default_denied -'],
  ['get https://a.example.com/', 'deny default_denied -'],
  ['GETX https://odd.example.net/', 'allow allowed any-method'],
  ['REPORT https://dav.example.net/', 'allow allowed report-only'],
  ['brew https://dav.example.net/', 'allow allowed report-only'],
  ['BREW https://dav.example.net/', 'deny default_denied -'],
  ['GET https://dav.example.net/', 'deny default_denied -'],
  ['DELETE https://a.example.com/', 'deny policy_denied no-deletes'],
  ['delete https://odd.example.net/', 'deny policy_denied no-deletes'],
  ['DELETE https://a.example.com:8443/', 'deny policy_denied no-deletes'],
  ['DELETE http://plain.example.net/', 'deny policy_denied no-deletes'],
  ['DELETE https://140.82.112.3/', 'deny policy_denied no-deletes'],
]);

table('decide() judges paths as they are sent', [
  ['GET https://api.github.com/repos/acme', 'allow allowed github-read'],
  ['GET https://api.github.com/repos/acme/x/contents/.github/a', 'allow allowed github-read'],
  ['GET https://api.github.com/repos/acme/../acme/x', 'allow allowed github-read'],
  ['GET https://api.github.com/repos/acme/../other', 'deny default_denied -'],
  ['GET https://api.github.com/repos/acme/%2e%2e/other', 'deny default_denied -'],
  ['GET https://api.github.com/repos/acme-evil/x', 'deny default_denied -'],
  ['GET https://api.github.com/Repos/acme/x', 'deny default_denied -'],
  ['GET https://api.github.com/%72epos/acme/x', 'allow allowed github-read'],
  ['GET https://api.github.com//repos//acme/x', 'allow allowed github-read'],
  ['GET https://api.github.com/repos/acme;v=1/x', 'deny default_denied -'],
  ['GET https://api.github.com/repos/acme/x;v=1', 'allow allowed github-read'],
  ['GET https://api.github.com/repos/acme%2fx', 'deny encoded_slash -'],
  ['GET https://api.github.com/repos/acme/x%2fy', 'deny encoded_slash -'],
  ['GET https://api.github.com/other/acme%2fx', 'deny default_denied -'],
  ['GET https://registry.npmjs.org/@scope%2fname', 'allow allowed npm'],
  ['GET https://registry.npmjs.org/name/-/name-1.0.0.tgz', 'allow allowed npm'],
  ['GET https://registry.npmjs.org/scope%2fname', 'deny encoded_slash -'],
  ['GET https://registry.npmjs.org/@a%2fb%2fc', 'deny encoded_slash -'],
  ['GET https://registry.npmjs.org/-/user/x', 'deny default_denied -'],
  ['GET https://a.example.com/x%2fy', 'deny encoded_slash -'],
  ['GET https://api.github.com/repos/acme/%252e%252e', 'deny double_encoding -'],
  ['GET https://odd.example.net/a%25b', 'allow allowed any-method'],
  ['GET https://a.example.com/a%25b', 'deny double_encoding -'],
  ['GET https://nowhere.example.net/a%25b', 'deny default_denied -'],
]);

table('decide() compares deny rules folded, decoded and without parameters', [
  ['GET https://a.example.com/repos/acme/secrets', 'allow allowed wild'],
  ['GET https://a.example.com/repos/acme/secret', 'deny policy_denied no-secret'],
  ['GET https://a.example.com/Repos/ACME/secret/x', 'deny policy_denied no-secret'],
  ['GET https://a.example.com/repos/acme%2fsecret/x', 'deny policy_denied no-secret'],
  ['GET https://a.example.com/repos;a/acme;b/secret;c', 'deny policy_denied no-secret'],
  ['GET https://a.example.com/repos%3ba/acme/secret', 'deny policy_denied no-secret'],
  ['GET https://a.example.com/repos/acme/%EF%BD%93ecret', 'deny policy_denied no-secret'],
  ['GET https://a.example.com/admin/', 'deny policy_denied no-secret'],
  ['GET https://a.example.com/admin/x', 'allow allowed wild'],
  ['GET https://a.example.com/administrator', 'allow allowed wild'],
]);

table('decide() judges queries: every value to allow, any value to deny', [
  ['GET https://github.com/acme/x/info/refs?service=git-upload-pack', 'allow allowed git'],
  ['GET https://github.com/acme/x/info/refs?service=git-receive-pack', 'deny default_denied -'],
  ['GET https://github.com/acme/x/info/refs?service=git-upload-pack&service=git-receive-pack', 'deny default_denied -'],
  ['GET https://github.com/acme/x/info/refs?service=git-upload-pack;service=git-receive-pack', 'deny default_denied -'],
  ['GET https://github.com/acme/x/info/refs', 'deny default_denied -'],
  ['GET https://a.example.com/?token=a', 'allow allowed wild'],
  ['GET https://a.example.com/?token=a&token=xyz', 'deny policy_denied no-token'],
  ['GET https://a.example.com/?TOKEN=XYZ', 'deny policy_denied no-token'],
  ['GET https://a.example.com/?a=b;token=xyz', 'deny policy_denied no-token'],
  ['GET https://a.example.com/?token=%ff', 'deny policy_denied no-token'],
  ['GET https://a.example.com/?%74oken=x', 'deny policy_denied no-token'],
  ['GET https://a.example.com/?other=%ff', 'allow allowed wild'],
]);

table('decide() judges addresses and the never-list before any rule', [
  ['GET https://140.82.112.3/', 'allow allowed address'],
  ['GET https://0x8c.82.112.3/', 'allow allowed address'],
  ['GET https://140.82.128.3/', 'deny default_denied -'],
  ['GET https://140.82.113.3/', 'deny policy_denied no-block'],
  ['GET https://[::ffff:140.82.113.3]/', 'deny policy_denied no-block'],
  ['GET https://[2606:4700::5efe:140.82.113.3]/', 'deny policy_denied no-block'],
  ['GET https://[2606:4700::1]/', 'allow allowed address'],
  ['GET https://[2606:4701::1]/', 'deny default_denied -'],
  ['GET https://10.1.2.3/', 'allow allowed address'],
  ['GET https://10.1.3.3/', 'deny default_denied -'],
  ['GET https://10.2.2.3/', 'deny private_address -'],
  ['GET https://169.254.169.254/', 'deny never_list -'],
  ['GET https://[64:ff9b::a9fe:a9fe]/', 'deny never_list -'],
  ['GET https://2852039166/', 'deny never_list -'],
  ['GET https://127.0.0.1/', 'deny never_list -'],
  ['GET https://metadata.google.internal/', 'deny never_list -'],
  ['GET https://METADATA.google.internal./', 'deny never_list -'],
  ['GET https://localhost/', 'deny never_list -'],
]);

table('decide() puts deny above ask above allow', [
  ['GET https://pay.example.com/', 'allow allowed wild'],
  ['POST https://pay.example.com/', 'ask ask_required pay'],
  ['POST https://pay.example.com/admin', 'deny policy_denied no-secret'],
]);

test('decide() denies without a policy and under an empty one', (t) => {
  t.is(shown(decide(null, facts('GET https://a.com/'))), 'deny default_denied -');
  t.is(shown(decide(policyOf([]), facts('GET https://a.com/'))), 'deny default_denied -');
});

test('decide() denies a destination that no canonical function made', (t) => {
  for (const name of ['a\u0000.example.com', 'A.example.com', '.example.com', 'a..example.com', 'a.example.com\n']) {
    t.is(
      decide(agent, { ...facts('GET https://a.example.com/'), destination: { kind: 'name', name } }).verdict,
      'deny',
      name,
    );
  }
  const destination: Destination = { kind: 'address', address: 'a.example.com' };
  t.is(decide(agent, { ...facts('GET https://a.example.com/'), destination }).verdict, 'deny');
});

test('decide() says why and what to do, without the query', (t) => {
  const denied = decide(agent, facts('POST https://api.github.com/repos/acme/x?token=hunter2'));
  t.is(denied.reason, 'No rule of policy coding-agent allows POST https://api.github.com/repos/acme/x.');
  t.is(
    denied.hint,
    'Allowed for this host: GET /repos/acme/**, GET /orgs/acme/**. The owner of policy coding-agent can add to it.',
  );
  t.false(JSON.stringify(denied).includes('hunter2'));
  t.is(decide(agent, facts('DELETE https://a.example.com/')).reason, 'Nothing an agent does may delete.');
  const unknown = decide(agent, facts(`GET https://x.test:8443/${'a'.repeat(500)}`));
  t.true(unknown.reason.length < 300);
  t.true(unknown.hint.includes('hosts: [x.test]'));
});

for (const [authority, wanted] of [
  ['api.github.com 443', 'allow allowed -'],
  ['api.github.com 80', 'deny default_denied -'],
  ['plain.example.net 80', 'allow allowed -'],
  ['a.example.com 8443', 'allow allowed -'],
  ['pay.example.com 443', 'allow allowed -'],
  ['c.example.com 443', 'allow allowed -'],
  ['example.com 443', 'deny default_denied -'],
  ['140.82.112.3 443', 'allow allowed -'],
  ['140.82.113.3 443', 'deny policy_denied no-block'],
  ['8.8.8.8 443', 'deny default_denied -'],
  ['169.254.169.254 443', 'deny never_list -'],
  ['10.9.9.9 443', 'deny private_address -'],
  ['localhost 443', 'deny never_list -'],
] as const) {
  test(`decideConnect() answers ${wanted} for ${authority}`, (t) => {
    const [host = '', port = ''] = authority.split(' ');
    const { destination } = facts(`GET https://${host}/`);
    t.is(shown(decideConnect(agent, destination, Number(port))), wanted);
    t.is(decideConnect(null, destination, Number(port)).verdict, 'deny');
  });
}

function table(name: string, rows: readonly Row[]): void {
  test(name, (t) => {
    for (const [request, wanted] of rows) {
      t.is(shown(decide(agent, facts(request))), wanted, request);
    }
  });
}
