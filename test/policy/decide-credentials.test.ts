/** Which credentials a decision carries. */
import test from 'ava';
import { compile, decide } from '../../policy/index.ts';
import { credential, policyDocument, rule } from './documents.ts';
import { facts, shown } from './requests.ts';

test('decide() gives the same frozen decision for the same rule and credentials', (t) => {
  const one = decide(tokens, facts('GET https://api.github.com/repos/acme/x'));
  t.is(one, decide(tokens, facts('GET https://api.github.com/repos/acme/y?z')));
  t.true(Object.isFrozen(one) && Object.isFrozen(one.credentials));
});

const tokens = compile(
  policyDocument({
    rules: [
      rule({ name: 'all', hosts: ['api.github.com', '*.acme.example'], encodedSlash: true }),
      rule({ name: 'clear', hosts: ['api.github.com', 'clear.acme.example', 'clear.example'], scheme: 'http' }),
      rule({ name: 'deny', effect: 'deny', hosts: ['**'], methods: ['DELETE'] }),
    ],
    credentials: [
      credential({ name: 'gh', bind: { hosts: ['api.github.com'], methods: ['GET'], paths: ['/repos/acme/**'] } }),
      credential({
        name: 'key',
        inject: { kind: 'header', header: 'X-Api-Key', format: '{secret}' },
        bind: { hosts: ['api.github.com', '*.acme.example'], ports: [] },
      }),
      credential({ name: 'clear', allowCleartext: true, bind: { hosts: ['clear.acme.example', 'clear.example'] } }),
    ],
  }),
);

for (const [request, wanted] of [
  ['GET https://api.github.com/repos/acme/x', 'gh,key'],
  ['HEAD https://api.github.com/repos/acme/x', 'gh,key'],
  ['POST https://api.github.com/repos/acme/x', 'key'],
  ['GET https://api.github.com/repos/other', 'key'],
  ['GET https://api.github.com/repos/acme%2Fx', 'key'],
  ['GET https://api.github.com/repos/acme/x%2Fy', 'gh,key'],
  ['GET https://api.github.com/repos/acme;a/x', 'key'],
  ['GET https://x.acme.example/', 'key'],
  ['GET http://clear.example/', 'clear'],
  ['GET https://clear.acme.example/', 'key,clear'],
  ['DELETE https://api.github.com/repos/acme/x', ''],
  ['GET https://api.github.com/a%25b', ''],
  ['GET https://acme.example/', ''],
] as const) {
  test(`decide() injects [${wanted}] into ${request}`, (t) => {
    t.is(
      decide(tokens, facts(request))
        .credentials.map(({ spec }) => spec.name)
        .join(),
      wanted,
    );
  });
}

for (const [request, wanted] of [
  ['GET http://api.github.com/repos/acme/x', 'deny cleartext_credential -'],
  ['POST http://api.github.com/other', 'deny cleartext_credential -'],
  ['GET http://clear.acme.example/', 'deny cleartext_credential -'],
  ['GET http://x.acme.example/', 'deny default_denied -'],
  ['DELETE http://api.github.com/repos/acme/x', 'deny policy_denied deny'],
] as const) {
  test(`decide() answers ${wanted} to ${request}: the route has a credential that must not travel in the clear`, (t) => {
    t.is(shown(decide(tokens, facts(request))), wanted);
  });
}

test('decide() refuses plain http on a bound route whatever the port', (t) => {
  const policy = compile(
    policyDocument({
      rules: [
        rule({ name: 'tls', hosts: ['a.com'], ports: [8443] }),
        rule({ name: 'clear', hosts: ['a.com'], scheme: 'http', ports: [80, 8080] }),
      ],
      credentials: [credential({ name: 'x', bind: { hosts: ['a.com'], paths: ['/bound/**'], ports: [8443] } })],
    }),
  );
  for (const port of ['', ':8080']) {
    t.is(shown(decide(policy, facts(`GET http://a.com${port}/bound/x`))), 'deny cleartext_credential -');
    t.is(shown(decide(policy, facts(`GET http://a.com${port}/free`))), 'allow allowed clear');
  }
});

test('decide() fails closed when two credentials want one header', (t) => {
  const policy = compile(
    policyDocument({
      rules: [rule({ name: 'a', hosts: ['a.com'] })],
      credentials: [
        credential({ name: 'x', bind: { hosts: ['a.com'] } }),
        credential({ name: 'y', bind: { hosts: ['a.com'] } }),
      ],
    }),
  );
  t.is(shown(decide(policy, facts('GET https://a.com/'))), 'deny rule_failed -');
});
