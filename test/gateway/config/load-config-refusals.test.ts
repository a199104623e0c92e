import test from 'ava';
import fc from 'fast-check';
import { configProblemCodes, type LoadConfigInput, loadConfig } from '../../../gateway/config/index.ts';

const user = { isRoot: false, home: '/home/ann' };

function load(yaml: string, input: Partial<LoadConfigInput> = {}) {
  return loadConfig({ flags: {}, env: {}, user, readFile: () => yaml, ...input });
}

/** The document, then what is wrong: code, line, column, a part of the message or hint. */
const bad: [string, string, [string, number, number, string][]][] = [
  ['an unknown key', 'prxy: {}', [['CONFIG_UNKNOWN_KEY', 1, 1, 'did you mean `proxy`?']]],
  ['an unknown inner key', 'audit:\n  fsnc: always', [['CONFIG_UNKNOWN_KEY', 2, 3, 'did you mean `fsync`?']]],
  ['a key nothing is near to', 'zzzzzz: 1', [['CONFIG_UNKNOWN_KEY', 1, 1, 'the keys here are: proxy']]],
  ['a key of Object', 'constructor: 1', [['CONFIG_SYNTAX', 1, 1, 'constructor']]],
  ['__proto__', '__proto__: { listen: [] }', [['CONFIG_SYNTAX', 1, 1, '__proto__']]],
  ['socks', 'proxy: { socks: 127.0.0.1:1080 }', [['CONFIG_UNSUPPORTED', 1, 10, 'not supported by this version']]],
  ['api.tls', 'api: { tls: {} }', [['CONFIG_UNSUPPORTED', 1, 8, 'not supported by this version']]],
  ['ingress', 'ingress: {}', [['CONFIG_UNSUPPORTED', 1, 1, 'not supported by this version']]],
  ['node', 'node: {}', [['CONFIG_UNSUPPORTED', 1, 1, 'not supported by this version']]],
  ['cluster', 'cluster: {}', [['CONFIG_UNSUPPORTED', 1, 1, 'not supported by this version']]],
  ['kms', 'vault: { kms: aws }', [['CONFIG_UNSUPPORTED', 1, 10, 'not supported by this version']]],
  ['sinks', 'audit: { sinks: [] }', [['CONFIG_UNSUPPORTED', 1, 10, 'not supported by this version']]],
  ['otlp', 'telemetry: { otlp: x }', [['CONFIG_UNSUPPORTED', 1, 14, 'not supported by this version']]],
  ['metrics off', 'telemetry: { metrics: false }', [['CONFIG_UNSUPPORTED', 1, 23, 'always on']]],
  ['a port out of range', 'proxy: { listen: ["127.0.0.1:65536"] }', [['CONFIG_VALUE', 1, 19, 'an address and port']]],
  ['a listener by name', 'proxy: { listen: ["localhost:3128"] }', [['CONFIG_VALUE', 1, 19, 'an address and port']]],
  ['a bare port', 'proxy: { listen: [3128] }', [['CONFIG_TYPE', 1, 19, 'got a number']]],
  ['a short IPv4', 'proxy: { listen: ["127.1:3128"] }', [['CONFIG_VALUE', 1, 19, 'an address and port']]],
  ['no list', 'proxy: { listen: 127.0.0.1:1 }', [['CONFIG_TYPE', 1, 18, 'write it as a list']]],
  ['an empty list', 'proxy: { listen: [] }', [['CONFIG_VALUE', 1, 18, 'at least one']]],
  ['the same listener twice', 'proxy: { listen: [127.0.0.1:1, 127.0.0.1:1] }', [['CONFIG_CONFLICT', 1, 32, 'twice']]],
  [
    'api on the proxy',
    'api: { listen: 127.0.0.1:3128 }',
    [['CONFIG_CONFLICT', 1, 16, 'listens on this address already']],
  ],
  ['an empty section', 'proxy:', [['CONFIG_TYPE', 1, 7, 'expected keys and values, got nothing']]],
  ['a document that is a list', '- a', [['CONFIG_TYPE', 1, 1, 'expected keys and values, got a list']]],
  ['a duration without unit', 'audit: { checkpointEvery: 60 }', [['CONFIG_TYPE', 1, 27, 'a duration']]],
  ['a duration too long', 'audit: { checkpointEvery: 25h }', [['CONFIG_VALUE', 1, 27, 'from 1s to 24h']]],
  ['a size too small', 'audit: { rotateAt: 1KiB }', [['CONFIG_VALUE', 1, 20, 'a size']]],
  ['a word that is none', 'audit: { fsync: sometimes }', [['CONFIG_VALUE', 1, 17, '`always` or `interval`']]],
  ['a fraction', 'audit: { maxQueued: 64.5 }', [['CONFIG_VALUE', 1, 21, 'whole number']]],
  [
    'a literal passphrase',
    'vault: { passphrase: hunter2 }',
    [['CONFIG_VALUE', 1, 22, 'never stands in the configuration']],
  ],
  ['a literal key', 'vault: { key: 0123abcd }', [['CONFIG_VALUE', 1, 15, 'never stands in the configuration']]],
  ['key and passphrase', 'vault: { key: file:k, passphrase: prompt }', [['CONFIG_CONFLICT', 1, 23, 'not with both']]],
  ['a home path', 'policies: { dir: ~/p }', [['CONFIG_VALUE', 1, 18, 'not expanded']]],
  ['a policy name', 'policies: { default: ../x }', [['CONFIG_VALUE', 1, 22, 'a policy name']]],
  [
    'an upstream without address',
    'upstreams: [{ name: a.example }]',
    [['CONFIG_VALUE', 1, 13, '`address` is missing']],
  ],
  [
    'an upper-case upstream',
    'upstreams: [{ name: A.example, address: 10.0.0.1 }]',
    [['CONFIG_VALUE', 1, 21, 'lower-case']],
  ],
  [
    'an upstream address by name',
    'upstreams: [{ name: a.example, address: b.c }]',
    [['CONFIG_VALUE', 1, 41, 'an IP address']],
  ],
  [
    'a pinned metadata address',
    'upstreams: [{ name: a.example, address: 169.254.169.254 }]',
    [['CONFIG_VALUE', 1, 41, 'metadata']],
  ],
  [
    'the same in IPv6',
    'upstreams: [{ name: a.example, address: "::ffff:a9fe:a9fe" }]',
    [['CONFIG_VALUE', 1, 41, 'metadata']],
  ],
  [
    'a pinned metadata name',
    'upstreams: [{ name: metadata.google.internal, address: 10.0.0.1 }]',
    [['CONFIG_VALUE', 1, 21, 'host name']],
  ],
  ['a zone', 'upstreams: [{ name: a.example, address: "fe80::1%eth0" }]', [['CONFIG_VALUE', 1, 41, 'an IP address']]],
  [
    'a name pinned twice',
    'upstreams:\n  - { name: a.b, address: 10.0.0.1 }\n  - { name: a.b, address: 10.0.0.2 }',
    [['CONFIG_CONFLICT', 3, 13, 'pinned twice']],
  ],
  [
    'parent proxy user',
    'egress: { parentProxy: "http://u:p@h:1" }',
    [['CONFIG_VALUE', 1, 24, 'without user, password']],
  ],
  ['an https parent proxy', 'egress: { parentProxy: "https://h:1" }', [['CONFIG_VALUE', 1, 24, 'http only']]],
  ['a caller that cannot come', 'callers: [{ id: a }]', [['CONFIG_VALUE', 1, 11, 'needs a `token` or a `socket`']]],
  [
    'a literal caller token',
    'callers: [{ id: a, token: s3cret }]',
    [['CONFIG_VALUE', 1, 27, 'never stands in the configuration']],
  ],
  [
    'a caller id taken',
    'callers: [{ id: a, token: env:A }, { id: a, token: env:B }]',
    [['CONFIG_CONFLICT', 1, 42, 'taken']],
  ],
  [
    'a shared caller socket',
    'callers: [{ id: a, socket: s }, { id: b, socket: s }]',
    [['CONFIG_CONFLICT', 1, 50, 'taken']],
  ],
  [
    'a label key',
    'callers: [{ id: a, token: env:A, labels: { "a b": x } }]',
    [['CONFIG_VALUE', 1, 44, 'not a valid name']],
  ],
  [
    'a label that is no text',
    'callers: [{ id: a, token: env:A, labels: { a: 1 } }]',
    [['CONFIG_TYPE', 1, 47, 'a label']],
  ],
  ['a control byte', 'policies: { dir: "a\\0b" }', [['CONFIG_VALUE', 1, 18, 'a path']]],
  [
    'several problems at once, in order',
    'node: {}\nproxy: { listen: [x] }\naudit: { fsync: no }',
    [
      ['CONFIG_UNSUPPORTED', 1, 1, 'node'],
      ['CONFIG_VALUE', 2, 19, 'an address and port'],
      ['CONFIG_VALUE', 3, 17, '`always`'],
    ],
  ],
];
for (const [name, yaml, expected] of bad) {
  test(`loadConfig() refuses ${name}`, (t) => {
    const loaded = load(yaml);
    t.false(loaded.ok);
    if (loaded.ok) return;
    const got = loaded.problems.map((one) => [one.code, one.line, one.column]);
    t.deepEqual(
      got,
      expected.map(([code, line, column]) => [code, line, column]),
    );
    expected.forEach(([, , , part], index) => {
      const problem = loaded.problems[index];
      t.true(`${problem?.message} ${problem?.hint}`.includes(part), `${problem?.message} (${problem?.hint})`);
    });
  });
}

const unreadable: [string, string][] = [
  ['a duplicate key', 'proxy: { listen: [127.0.0.1:1] }\nproxy: { listen: [127.0.0.1:2] }'],
  ['a tab', 'proxy:\n\tlisten: []'],
  ['an open bracket', 'proxy: { listen: ['],
  ['two documents', 'proxy: { listen: [127.0.0.1:1] }\n---\napi: {}'],
];
for (const [name, yaml] of unreadable) {
  test(`loadConfig() refuses ${name} with its place`, (t) => {
    const loaded = load(yaml);
    t.false(loaded.ok);
    t.true(!loaded.ok && loaded.problems.every((one) => one.line >= 1 && one.column >= 1 && one.severity === 'error'));
  });
}

test('loadConfig() refuses an alias bomb without building it', (t) => {
  const bomb = [
    'a: &a [x]',
    ...'bcdefghij'.split('').map((key, i) => `${key}: &${key} [${`*${'abcdefghij'[i]},`.repeat(9)}]`),
  ];
  // Three thousand million texts: built, they would end this process before any clock was asked.
  t.false(load(bomb.join('\n')).ok);
});

test('loadConfig() refuses a file that is too long', (t) => {
  const loaded = load(`# ${'x'.repeat(1024 * 1024)}`);
  t.deepEqual(loaded.ok || loaded.problems.map((one) => one.code), ['CONFIG_UNREADABLE']);
});

test('loadConfig() refuses a control socket path that does not fit', (t) => {
  const loaded = load('', { flags: { home: `/tmp/${'x'.repeat(120)}` } });
  t.true(!loaded.ok && loaded.problems[0]?.message.includes('longer than 107 bytes') === true);
});

const badFlags: [string, LoadConfigInput['flags'], string][] = [
  ['--listen', { listen: ['nowhere'] }, '--listen'],
  ['--api-listen', { apiListen: 'x' }, '--api-listen'],
  ['--policy', { policy: 'Team A' }, '--policy'],
];
for (const [name, flags, part] of badFlags) {
  test(`loadConfig() refuses a wrong ${name}`, (t) => {
    const loaded = load('', { flags });
    t.deepEqual(loaded.ok || loaded.problems.map((one) => [one.file, one.code]), [['command line', 'CONFIG_VALUE']]);
    t.true(!loaded.ok && loaded.problems[0]?.message.startsWith(part) === true);
  });
}

test('loadConfig() never throws, and every problem has a known code or one of the reader', (t) => {
  const known = new Set<string>(configProblemCodes);
  const word = fc.constantFrom(
    'proxy',
    'listen',
    'vault',
    'key',
    'callers',
    'id',
    '*a',
    '&a',
    '- ',
    ': ',
    '\n',
    '{',
    '}',
    '[',
    ']',
    '"',
    '#',
    '? ',
    '|',
    '!!x',
    '\t',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(word).map((words) => words.join(' ')),
        fc.json(),
      ),
      (yaml) => {
        const loaded = load(yaml);
        const problems = loaded.ok ? loaded.warnings : loaded.problems;
        for (const one of problems) t.true(known.has(one.code) || one.code.startsWith('POLICY_'), one.code);
        return loaded.ok || problems.length > 0;
      },
    ),
    { numRuns: 300 },
  );
  t.pass();
});
