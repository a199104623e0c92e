/** Decisions do not depend on the order or the number of rules. */
import test from 'ava';
import fc from 'fast-check';
import { canonicalRequest, decide, type Rule } from '../../policy/index.ts';
import { policyOf, rule } from './documents.ts';
import { facts, shown } from './requests.ts';

test('decide() is the same for every order of rules', (t) => {
  const requests = [
    'GET https://a.com/x',
    'POST https://b.a.com/y',
    'DELETE https://a.com/x',
    'GET https://b.a.com/admin/x',
    'PUT https://a.com/z?k=1',
  ];
  const rules: readonly Rule[] = [
    rule({ name: 'r1', hosts: ['a.com', '*.a.com'] }),
    rule({ name: 'r2', hosts: ['a.com'], paths: ['/x'] }),
    rule({ name: 'r3', hosts: ['*.a.com'], methods: ['POST'] }),
    rule({ name: 'r4', effect: 'deny', hosts: ['**'], paths: ['/admin/**', '/**/y'] }),
    rule({ name: 'r5', effect: 'deny', hosts: ['**'], methods: ['DELETE'] }),
    rule({ name: 'r6', effect: 'ask', hosts: ['a.com'], query: { k: '*' } }),
    rule({ name: 'r7', hosts: ['b.a.com'] }),
    ...['p', 'q', 'r', 's', 't', 'u', 'v'].map((n) =>
      rule({ name: n, effect: 'deny', hosts: ['**'], paths: [`/${n}/**`] }),
    ),
  ];
  const wanted = requests.map((request) => shown(decide(policyOf(rules), facts(request))));
  fc.assert(
    fc.property(fc.shuffledSubarray([...rules], { minLength: rules.length }), (shuffled) => {
      const policy = policyOf(shuffled);
      return requests.every((request, n) => shown(decide(policy, facts(request))) === wanted[n]);
    }),
    { numRuns: 50 },
  );
  t.pass();
});

test('decide() finds the same among many rules of one host as among few', (t) => {
  const many = Array.from({ length: 50 }, (_, n) => [
    rule({ name: `a${n}`, hosts: ['a.com'], paths: [`/x${n}/**`, `/*/y${n}`], methods: ['GET'] }),
    rule({ name: `d${n}`, effect: 'deny', hosts: ['**'], paths: [`/X${n}/Secret`, `/**/bad${n}`, `/*${n}z/q/*`] }),
  ]).flat();
  const policy = policyOf(many);
  const pieces = fc.constantFrom('x1', 'x2', 'X1', 'secret', 'y1', 'y49', 'bad1', 'BAD2', 'q', '1z', 'k;p', '%2F', '');
  fc.assert(
    fc.property(fc.array(pieces, { minLength: 1, maxLength: 4 }), (parts) => {
      const url = canonicalRequest('GET', `https://a.com/${parts.join('/')}`);
      if (!url.ok) return true;
      const single = many.map((one) => decide(policyOf([one]), url.value).code);
      const code = decide(policy, url.value).code;
      if (single.includes('policy_denied')) return code === 'policy_denied';
      return single.includes('allowed') ? code === 'allowed' : code !== 'allowed' && code !== 'policy_denied';
    }),
    { numRuns: 60 },
  );
  t.pass();
});
