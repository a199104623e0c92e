/** What a compiled policy is, and what it says about itself. */
import test from 'ava';
import { compile, explainRequest, PolicyError, runPolicyTests } from '../../policy/index.ts';
import { credential, policyDocument, policyOf, rule } from './documents.ts';

test('compile() keeps the digest when only lines and tests change', (t) => {
  const document = policyDocument({ rules: [rule({ name: 'a', hosts: ['a.com'] })] });
  const moved = policyDocument({
    rules: [rule({ name: 'a', hosts: ['a.com'], line: 99 })],
    tests: [{ method: 'GET', url: 'https://a.com/', expect: 'allow', line: 3 }],
  });
  const wider = policyDocument({ rules: [rule({ name: 'a', hosts: ['a.com', 'b.com'] })] });
  t.regex(compile(document).digest, /^[0-9a-f]{64}$/);
  t.is(compile(moved).digest, compile(document).digest);
  t.not(compile(wider).digest, compile(document).digest);
});

test('compile() gives an immutable policy whose dump is its document', (t) => {
  const policy = policyOf([rule({ name: 'a', hosts: ['a.com'] })]);
  t.true(Object.isFrozen(policy));
  t.false(JSON.stringify(policy).includes('index'));
  t.is(policy.ruleCount, 1);
  t.true(policy.sizeBytes > 0);
});

for (const [what, parts] of [
  ['a rule without hosts and cidrs', { rules: [rule({ name: 'a' })] }],
  ['** in an allow rule', { rules: [rule({ name: 'a', hosts: ['**'] })] }],
  ['** in a credential', { credentials: [credential({ name: 'c', bind: { hosts: ['**'] } })] }],
  ['a bad host', { rules: [rule({ name: 'a', hosts: ['a.*.com'] })] }],
  ['a bad block', { rules: [rule({ name: 'a', cidrs: ['10.0.0.1/8'] })] }],
  ['a bad path', { rules: [rule({ name: 'a', hosts: ['a.com'], paths: ['/{a,b}'] })] }],
  ['a bad query glob', { rules: [rule({ name: 'a', hosts: ['a.com'], query: { q: '**' } })] }],
  ['a bad allowPrivate', { allowPrivate: ['ten'] }],
  ['a name used twice', { rules: [rule({ name: 'a', hosts: ['a.com'] }), rule({ name: 'a', hosts: ['b.com'] })] }],
] as const) {
  test(`compile() throws POLICY_INVALID for ${what}`, (t) => {
    t.is(t.throws(() => compile(policyDocument(parts)), { instanceOf: PolicyError })?.code, 'POLICY_INVALID');
  });
}

const explained = compile(
  policyDocument({
    name: 'p',
    rules: [
      rule({ name: 'read', hosts: ['a.com'], methods: ['GET'], paths: ['/x/**'], line: 4 }),
      rule({ name: 'read-too', hosts: ['*.com'], paths: ['/x/**'] }),
      rule({ name: 'post', hosts: ['a.com'], methods: ['POST'] }),
      rule({ name: 'other', hosts: ['b.com'] }),
      rule({ name: 'no', effect: 'deny', hosts: ['**'], paths: ['/x/secret'] }),
    ],
    credentials: [credential({ name: 'token', bind: { hosts: ['a.com'] } })],
    tests: [
      { method: 'GET', url: 'https://a.com/x/1', expect: 'allow', rule: 'read', credential: 'token', line: 1 },
      { method: 'GET', url: 'https://a.com/x/secret', expect: 'deny', rule: 'no', line: 2 },
      { method: 'GET', url: 'https://a.com/..', expect: 'deny', line: 3 },
      { method: 'GET', url: 'https://a.com/x/1', expect: 'deny', line: 4 },
      { method: 'POST', url: 'https://a.com/y', expect: 'allow', rule: 'read', credential: 'none', line: 5 },
    ],
  }),
);

test('explainRequest() names the winner, the losers, the near misses and the credential', (t) => {
  const result = explainRequest(explained, 'GET', 'https://A.com/y/../x/1?q=s3cret');
  if (!result.ok) return t.fail(result.reason);
  const { winner, losers, nearMisses, credentials, canonicalised, request } = result.value;
  t.is(winner?.rule, 'read');
  t.is(winner?.line, 4);
  t.deepEqual(
    losers.map((note) => note.rule),
    ['read-too'],
  );
  t.deepEqual(
    nearMisses.map((note) => note.rule),
    ['no', 'post'],
  );
  t.deepEqual(credentials, ['token']);
  t.is(canonicalised.length, 2);
  t.is(request, 'GET https://a.com/x/1');
  t.false(JSON.stringify([winner, losers, nearMisses, canonicalised, result.value.decision.reason]).includes('s3cret'));
});

test('explainRequest() shows what a deny rule overrules', (t) => {
  const result = explainRequest(explained, 'GET', 'https://a.com/x/secret');
  if (!result.ok) return t.fail(result.reason);
  t.is(result.value.winner?.rule, 'no');
  t.deepEqual(
    result.value.losers.map((note) => note.rule),
    ['read', 'read-too'],
  );
  t.deepEqual(result.value.credentials, []);
});

test('explainRequest() reports a request that has no canonical form', (t) => {
  for (const [method, url, code] of [
    ['GET', 'https://a.com/..', 'target_above_root'],
    ['GET', 'https://u@a.com/', 'authority_userinfo'],
    ['GET', 'ftp://a.com/', 'url_malformed'],
    ['GE T', 'https://a.com/', 'method_malformed'],
  ] as const) {
    const result = explainRequest(explained, method, url);
    t.is(result.ok ? 'ok' : result.code, code);
  }
});

test('runPolicyTests() says for each test whether it holds and what came instead', (t) => {
  const results = runPolicyTests(explained);
  t.deepEqual(
    results.map(({ passed }) => passed),
    [true, true, true, false, false],
  );
  t.is(results[2]?.actual.code, 'target_above_root');
  t.is(results[3]?.message, 'expected deny, got allow (allowed, rule read)');
  t.is(results[4]?.message, 'expected rule read, got post; expected credential none, got token');
});
