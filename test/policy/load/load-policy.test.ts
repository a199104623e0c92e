import test from 'ava';
import { parse } from 'yaml';
import { decide, formatProblems, loadPolicy, MAX_POLICY_BYTES, type PolicyDocument } from '../../../policy/index.ts';
import { filesBelow, repositoryText } from '../../kit/source-tree.ts';
import { bound, fullPolicy as full, read, rule } from './policy-texts.ts';

const load = (source: string | Uint8Array) => loadPolicy(source, { file: 'policy.yaml' });

const corpus: readonly string[] = filesBelow('test/testdata/policy', '.yaml').map(
  (file) => parse(repositoryText(file)).policy,
);

test('loadPolicy() gives a document with every value canonical and every default filled in', (t) => {
  const loaded = load(full);
  if (!loaded.ok) return t.fail(formatProblems(loaded.problems));
  const expected: PolicyDocument = {
    version: 1,
    name: 'coding-agent',
    description: 'What a coding agent may reach.',
    owner: 'platform-security',
    mode: 'enforce',
    allowPrivate: ['10.20.0.0/16'],
    rules: [
      {
        ...defaults,
        name: 'github-read',
        effect: 'allow',
        reason: 'Read-only access to our repositories.',
        hosts: ['api.github.com', '*.xn--bcher-kva.example'],
        methods: ['GET', 'HEAD'],
        paths: ['/repos/acme/**'],
        line: 9,
      },
      {
        ...defaults,
        name: 'metrics',
        effect: 'allow',
        scheme: 'http',
        cidrs: ['10.20.30.0/24', '2606:4700::/48'],
        query: { format: 'text*' },
        ports: [9090],
        encodedSlash: true,
        line: 17,
      },
      { ...defaults, name: 'no-deletes', effect: 'deny', hosts: ['**'], methods: ['DELETE'], line: 27 },
    ],
    credentials: [
      {
        name: 'token',
        secret: 'vault:github/acme@2',
        bind: { hosts: ['api.github.com'], methods: ['GET'], paths: ['/repos/acme/**'], ports: [] },
        inject: { kind: 'header', header: 'authorization', format: 'Bearer {secret}' },
        allowCleartext: false,
        onClientCredential: 'replace',
        line: 29,
      },
    ],
    tests: [
      {
        method: 'GET',
        url: 'https://api.github.com/repos/acme/site',
        expect: 'allow',
        rule: 'github-read',
        credential: 'token',
        line: 35,
      },
      { method: 'DELETE', url: 'https://api.github.com/repos/acme/site', expect: 'deny', rule: 'no-deletes', line: 36 },
    ],
  };
  t.deepEqual(loaded.document, expected);
  t.is(loaded.policy.document, loaded.document);
  t.deepEqual(
    loaded.warnings.map(({ code, line }) => `${code} ${line}`),
    ['POLICY_LINT_UNTESTED 17'],
  );
});

const defaults = {
  protocol: 'http',
  scheme: 'https',
  hosts: [],
  cidrs: [],
  methods: [],
  paths: [],
  query: {},
  ports: [],
  encodedSlash: false,
  unsafeWide: false,
  tls: 'intercept',
} as const;

test('loadPolicy() takes a document without rules, which refuses everything', (t) => {
  for (const text of ['version: 1\nname: t\n', 'version: 1\nname: t\nrules: []\ncredentials: []\ntests: []\n']) {
    const loaded = load(text);
    if (!loaded.ok) return t.fail(formatProblems(loaded.problems));
    t.deepEqual(loaded.warnings, []);
    const facts = {
      scheme: 'https',
      destination: { kind: 'name', name: 'example.com' },
      port: 443,
      method: 'GET',
      target: { path: '/', query: null, encodedSlash: false, encodedPercent: false },
    } as const;
    t.is(decide(loaded.policy, facts).code, 'default_denied');
  }
});

test('loadPolicy() says which rule won a failing test', (t) => {
  const loaded = load(full.replace('rule: no-deletes }', 'rule: metrics }'));
  if (loaded.ok) return t.fail('it loads');
  t.deepEqual(
    loaded.problems.map(({ code, line, message }) => ({ code, line, message })),
    [{ code: 'POLICY_TEST_FAILED', line: 36, message: 'the test fails: expected rule metrics, got no-deletes' }],
  );
});

const secrets = [
  'ghp_0123456789abcdefghijABCDEFGHIJ012345',
  'hunter2hunter2',
  'env:ghp-0123456789abcdef',
  'vault:ghp_0123456789 abcdef',
  'Bearer abcdefgh',
];

for (const secret of secrets) {
  test(`loadPolicy() does not repeat ${secret.slice(0, 9)}… when it stands where only its name may`, (t) => {
    const places = [
      full.replace('vault:github/acme@2', JSON.stringify(secret)),
      full.replace('vault:github/acme@2', `[${JSON.stringify(secret)}]`),
      full.replace('vault:github/acme@2', `{ value: ${JSON.stringify(secret)} }`),
      full.replace('"Bearer {secret}"', JSON.stringify(secret)),
      full.replace('"Bearer {secret}"', JSON.stringify(`${secret} {secret}{secret}`)),
      full.replace('header: Authorization', `header: ${JSON.stringify(`${secret}:`)}`),
      full.replace('inject: {', `inject: { basic: { username: ${JSON.stringify(`:${secret}`)} },`),
      full.replace('secret: vault:github/acme@2', `secret: ${JSON.stringify(secret).slice(0, -1)}`),
      full.replace('secret: vault:github/acme@2', `secret: ${secret}: x`),
      full.replace('vault:github/acme@2', `!tag ${JSON.stringify(secret)}`),
    ];
    for (const text of places) {
      const loaded = load(text);
      if (loaded.ok) return t.fail(text);
      const core = secret.replace(/^\w+:/, '');
      t.false(JSON.stringify(loaded.problems).includes(core), formatProblems(loaded.problems));
    }
  });
}

test('loadPolicy() refuses bytes that are no text, and too many of them', (t) => {
  const codes = (source: Uint8Array) => {
    const loaded = load(source);
    return loaded.ok ? [] : loaded.problems.map(({ code }) => code);
  };
  t.deepEqual(codes(Uint8Array.of(0x76, 0xc3, 0x28)), ['POLICY_ENCODING']);
  t.deepEqual(codes(new Uint8Array(MAX_POLICY_BYTES + 1).fill(0x20)), ['POLICY_TOO_LARGE']);
  t.deepEqual(codes(new TextEncoder().encode(full)), []);
});

test('loadPolicy() refuses lists and bindings that nobody can review', (t) => {
  const hosts = Array.from({ length: 1001 }, (_, index) => `h${index}.example.com`).join(', ');
  const paths = Array.from({ length: 200 }, (_, index) => `/p${index}`);
  const bind = `, paths: ${JSON.stringify(paths)}, ports: [${Array.from({ length: 101 }, (_, index) => index + 1).join(', ')}]`;
  for (const text of [rule(read).replace('api.example.com', hosts), bound(read, bind)]) {
    const loaded = load(text);
    t.true(!loaded.ok && loaded.problems.some(({ code }) => code === 'POLICY_TOO_LONG'));
  }
});

test('loadPolicy() loads what it gave again, and gives the same', (t) => {
  for (const text of [full, ...corpus]) {
    const first = load(text);
    if (!first.ok) return t.fail(formatProblems(first.problems));
    const second = load(JSON.stringify(written(first.document)));
    if (!second.ok) return t.fail(formatProblems(second.problems));
    t.is(second.policy.digest, first.policy.digest);
  }
});

/** A document as a file would say it. */
function written({ allowPrivate, rules, credentials, tests, ...rest }: PolicyDocument): unknown {
  return {
    ...rest,
    ...unlessEmpty({ allowPrivate }),
    rules: rules.map(({ line: _, hosts, cidrs, methods, paths, query, ports, ...rule }) => ({
      ...rule,
      ...unlessEmpty({ hosts, cidrs, methods, paths, ports }),
      ...(Object.keys(query).length === 0 ? {} : { query }),
    })),
    credentials: credentials.map(({ line: _, inject, bind, ...credential }) => ({
      ...credential,
      bind: unlessEmpty({ ...bind }),
      inject:
        inject.kind === 'header'
          ? { header: inject.header, format: inject.format }
          : { basic: { username: inject.username } },
    })),
    tests: tests.map(({ line: _, method, url, ...one }) => ({ ...one, request: `${method} ${url}` })),
  };
}

function unlessEmpty(lists: Readonly<Record<string, readonly unknown[]>>): Record<string, readonly unknown[]> {
  return Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0));
}
