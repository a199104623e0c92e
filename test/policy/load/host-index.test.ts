import test from 'ava';
import fc from 'fast-check';
import { loadPolicy } from '../../../policy/index.ts';
import { checkBindings } from '../../../policy/load/bind-cover.ts';
import type { DocumentCheck } from '../../../policy/load/document-check.ts';
import { hostCovers, hostsIntersect } from '../../../policy/load/globs.ts';
import { hostIndex } from '../../../policy/load/host-index.ts';
import { lint } from '../../../policy/load/lint.ts';
import type { PolicyDocument } from '../../../policy/types.ts';

const host = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .array(fc.constantFrom('a', 'b', 'ab'), { minLength: 1, maxLength: 4 })
      .map((labels) => labels.join('.')),
  },
  {
    weight: 6,
    arbitrary: fc
      .array(fc.constantFrom('a', 'b', 'ab'), { minLength: 1, maxLength: 3 })
      .map((labels) => `*.${labels.join('.')}`),
  },
  { weight: 1, arbitrary: fc.constantFrom('**', '*', '*.*', 'a.*.b', '*a.b', '*.', '', '.', '.a') },
);
const hostLists = fc.array(fc.array(host, { maxLength: 4 }), { maxLength: 8 });

test('hostIndex() answers like comparing each with each', (t) => {
  fc.assert(
    fc.property(hostLists, fc.array(host, { maxLength: 4 }), (lists, asked) => {
      const items = lists.map((hosts, position) => ({ hosts, position }));
      const index = hostIndex(items, ({ hosts }) => hosts);
      t.deepEqual(
        index.covering(asked),
        items.filter(({ hosts }) => asked.every((inner) => hosts.some((outer) => hostCovers(outer, inner)))),
      );
      t.deepEqual(
        index.meeting(asked),
        items.filter(({ hosts }) => hosts.some((one) => asked.some((other) => hostsIntersect(one, other)))),
      );
    }),
    { numRuns: 1000 },
  );
});

/** Rules of one host each, bound by five credentials with a fifth of the hosts each; a deny rule in front. */
function policyText(ruleCount: number): string {
  const hosts = Array.from({ length: ruleCount }, (_, index) => `h${index}.example.com`);
  const rules = hosts.map((name, index) => `  - { name: r${index}, effect: allow, hosts: [${name}], paths: [/v1] }`);
  const credentials = [0, 1, 2, 3, 4].map((part) => {
    const bound = hosts.filter((_, index) => index % 5 === part).join(', ');
    return `  - { name: c${part}, secret: "env:S", bind: { hosts: [${bound}], paths: [/v1] }, inject: { header: x-key } }`;
  });
  const deny = '  - { name: no-admin, effect: deny, hosts: ["*.example.com"], paths: [/admin] }';
  return ['version: 1', 'name: many', 'rules:', deny, ...rules, 'credentials:', ...credentials, ''].join('\n');
}

function documentOf(ruleCount: number): PolicyDocument {
  const loaded = loadPolicy(policyText(ruleCount), { file: 'many.yaml' });
  if (!loaded.ok) throw new Error(loaded.problems[0]?.message);
  return loaded.document;
}

/** How many hosts the checks between rules and credentials look at. */
function hostsRead(document: PolicyDocument): number {
  let reads = 0;
  const counted = (hosts: readonly string[]): readonly string[] =>
    new Proxy(hosts, {
      get(target, key) {
        if (typeof key === 'string' && /^[0-9]+$/.test(key)) reads += 1;
        return Reflect.get(target, key);
      },
    });
  const rules = document.rules.map((rule) => ({ ...rule, hosts: counted(rule.hosts) }));
  const credentials = document.credentials.map((credential) => ({
    ...credential,
    bind: { ...credential.bind, hosts: counted(credential.bind.hosts) },
  }));
  const check: DocumentCheck = { report: () => {}, line: () => 1 };
  checkBindings(rules, credentials, check);
  lint({ ...document, rules, credentials }, new Set(), check);
  return reads;
}

test('checkBindings() and lint() look at four times as many hosts when there are four times as many', (t) => {
  const [few, many] = [hostsRead(documentOf(200)), hostsRead(documentOf(800))];
  t.true(few >= 200);
  // Comparing each with each would be sixteen times.
  t.true(many <= 5 * few, `${few} hosts, then ${many}`);
});

test('loadPolicy() names the first of several credentials that meet, in the order of the file', (t) => {
  const credential = (name: string, host: string): string =>
    `  - { name: ${name}, secret: "env:S", bind: { hosts: ["${host}"] }, inject: { header: x-key } }`;
  const text = [
    'version: 1',
    'name: t',
    'rules: [{ name: r, effect: allow, hosts: ["*.example.com"] }]',
    'credentials:',
    credential('other', 'b.example.com'),
    credential('wide', '*.a.example.com'),
    credential('exact', 'x.a.example.com'),
    credential('beside', 'xa.example.com'),
    credential('all', '*.example.com'),
    '',
  ].join('\n');
  const loaded = loadPolicy(text, { file: 't.yaml' });
  if (loaded.ok) return t.fail();
  t.deepEqual(
    loaded.problems.map(({ message }) => message),
    [
      '`exact` and `wide` could both fill `x-key` of one request',
      '`all` and `other` could both fill `x-key` of one request',
    ],
  );
});
