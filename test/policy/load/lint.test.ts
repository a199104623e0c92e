import test from 'ava';
import { formatProblems, loadPolicy } from '../../../policy/index.ts';
import { bound, read, rule } from './policy-texts.ts';

const aTest = 'tests: [{ request: GET https://api.example.com/x, expect: allow, rule: r }]\n';

const warnings: readonly (readonly [name: string, text: string, codes: readonly string[]])[] = [
  ['nothing to say', `${rule(read)}${aTest}`, []],
  ['no tests', rule(read), ['LINT_UNTESTED']],
  ['a credential, narrow rule', `${bound(read, `, ${read}`)}${aTest}`, []],
  ['a credential, any method', `${bound('paths: ["/x"]', `, ${read}`)}${aTest}`, ['LINT_ANY_METHOD']],
  ['a credential, any path', `${bound('methods: [GET]', `, ${read}`)}${aTest}`, ['LINT_ANY_PATH']],
  [
    'a credential that may write',
    `${bound('methods: [GET, POST], paths: ["/x"]', ', methods: [GET, POST], paths: ["/x"]')}${aTest}`,
    ['LINT_WRITE_WITH_CREDENTIAL'],
  ],
  [
    'plain http beside a credential',
    `${bound(read, `, ${read}`)}`.replace(
      'rules:\n',
      'rules:\n  - { name: h, effect: allow, scheme: http, hosts: [api.example.com], methods: [GET] }\n',
    ),
    ['LINT_UNTESTED', 'LINT_CLEARTEXT'],
  ],
  ['a write that gets no credential', `${bound('methods: [GET, POST], paths: ["/x"]', `, ${read}`)}${aTest}`, []],
  ['the same path twice', `${rule('methods: [GET], paths: ["/x", "/%78"]')}${aTest}`, ['LINT_REPEATED']],
  ['an encoded slash nobody takes', rule('methods: [GET], paths: ["/a%2Fb"]'), ['LINT_UNTESTED', 'LINT_NEVER_MATCHES']],
  ['an encoded slash that is taken', rule('methods: [GET], paths: ["/a%2Fb"], encodedSlash: true'), ['LINT_UNTESTED']],
  ['a private block that is shut', `${rule(`${read}, cidrs: [10.0.0.0/24]`)}${aTest}`, ['LINT_NEVER_MATCHES']],
  ['a private block that is open', `${rule(`${read}, cidrs: [10.0.0.0/24]`)}allowPrivate: [10.0.0.0/8]\n${aTest}`, []],
  [
    'an opened block with a metadata address',
    `${rule(read)}allowPrivate: [100.64.0.0/10]\n${aTest}`,
    ['LINT_STAYS_SHUT'],
  ],
  [
    'a public suffix',
    'version: 1\nname: t\nrules:\n  - { name: r, effect: allow, hosts: ["*.github.io"], unsafeWide: true }\n',
    ['LINT_UNTESTED', 'LINT_PUBLIC_SUFFIX'],
  ],
  [
    'a rule that a deny takes whole',
    `${rule(read)}  - { name: d, effect: deny, hosts: ["*.example.com"], paths: ["/**"] }\n`,
    ['LINT_UNTESTED', 'LINT_SHADOWED'],
  ],
  [
    'a rule that a deny takes in part',
    `${rule(read)}  - { name: d, effect: deny, hosts: ["*.example.com"], paths: ["/x/y"] }\n`,
    ['LINT_UNTESTED'],
  ],
  [
    'a rule that a deny for all hosts takes whole',
    `${rule('methods: [GET, POST]')}  - { name: d, effect: deny, hosts: ["**"], methods: [any] }\n`,
    ['LINT_UNTESTED', 'LINT_SHADOWED'],
  ],
  [
    'a rule that a deny for other methods leaves alone',
    `${rule('methods: [GET, POST]')}  - { name: d, effect: deny, hosts: ["**"], methods: [GET] }\n`,
    ['LINT_UNTESTED'],
  ],
];

for (const [name, text, codes] of warnings) {
  test(`loadPolicy() warns rightly: ${name}`, (t) => {
    const loaded = loadPolicy(text, { file: 'policy.yaml' });
    if (!loaded.ok) return t.fail(formatProblems(loaded.problems));
    t.deepEqual(
      loaded.warnings.map(({ code }) => code.replace('POLICY_', '')),
      codes,
    );
    t.true(loaded.warnings.every(({ severity }) => severity === 'warning'));
  });
}
