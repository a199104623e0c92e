import test from 'ava';
import { configSchema, type LoadConfigInput, loadConfig } from '../../../gateway/config/index.ts';

const user = { isRoot: false, home: '/home/ann' };
const home = '/home/ann/.local/share/sallyport';

function load(yaml: string, input: Partial<LoadConfigInput> = {}) {
  return loadConfig({ flags: {}, env: {}, user, readFile: () => yaml, ...input });
}

function missingFile(): never {
  throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
}

test('loadConfig() needs no file when there is none', (t) => {
  const loaded = load('', { readFile: missingFile });
  t.deepEqual(loaded, {
    ok: true,
    warnings: [],
    file: null,
    config: {
      home,
      proxy: { listen: [{ host: '127.0.0.1', port: 3128 }] },
      api: { listen: null, socket: `${home}/run/control.sock` },
      policies: { dir: `${home}/policies`, default: 'default' },
      vault: { file: `${home}/vault.sealed`, key: { kind: 'file', path: `${home}/vault.key` } },
      audit: {
        dir: `${home}/audit`,
        fsync: 'interval',
        checkpointEveryMs: 60_000,
        rotateBytes: 256 * 1024 ** 2,
        maxQueued: 8192,
      },
      upstreams: [],
      egress: { parentProxy: null, extraCa: null, resolver: [] },
      callers: [],
    },
  });
});

const homes: [string, Partial<LoadConfigInput>, string][] = [
  ['root', { user: { isRoot: true, home: '/root' } }, '/var/lib/sallyport'],
  ['another user', {}, home],
  ['the environment', { env: { SALLYPORT_HOME: '/srv/s' } }, '/srv/s'],
  ['an empty variable', { env: { SALLYPORT_HOME: '' } }, home],
  ['the flag', { flags: { home: '/opt/s' }, env: { SALLYPORT_HOME: '/srv/s' } }, '/opt/s'],
];
for (const [name, input, expected] of homes) {
  test(`loadConfig() takes the home of ${name}`, (t) => {
    const loaded = load('', { readFile: missingFile, ...input });
    t.is(loaded.ok && loaded.config.home, expected);
  });
}

const files: [string, Partial<LoadConfigInput>, string][] = [
  ['the home', {}, `${home}/sallyport.yaml`],
  ['the environment', { env: { SALLYPORT_CONFIG: '/etc/s.yaml' } }, '/etc/s.yaml'],
  ['the flag', { flags: { config: '/tmp/f.yaml' }, env: { SALLYPORT_CONFIG: '/etc/s.yaml' } }, '/tmp/f.yaml'],
];
for (const [name, input, expected] of files) {
  test(`loadConfig() reads the file of ${name}`, (t) => {
    const asked: string[] = [];
    const readFile = (path: string): string => {
      asked.push(path);
      return '';
    };
    const loaded = load('', { ...input, readFile });
    t.deepEqual(asked, [expected]);
    t.is(loaded.ok && loaded.file, expected);
  });
}

test('loadConfig() refuses a named file that is not there', (t) => {
  const loaded = load('', { flags: { config: '/nowhere.yaml' }, readFile: missingFile });
  t.false(loaded.ok);
  t.deepEqual(loaded.ok || loaded.problems.map((one) => [one.code, one.file, one.message]), [
    ['CONFIG_UNREADABLE', '/nowhere.yaml', 'Cannot read the configuration: ENOENT'],
  ]);
});

test('loadConfig() takes every key and resolves paths against the home', (t) => {
  const loaded = load(`
proxy: { listen: [127.0.0.1:3128, "[::1]:0"] }
api: { listen: 127.0.0.1:3000, socket: c.sock }
policies: { dir: p, default: team-a }
vault: { file: v.sealed, passphrase: env:PASS }
audit: { dir: /var/log/s, fsync: always, checkpointEvery: 5m, rotateAt: 64MiB, maxQueued: 4096 }
upstreams: [{ name: api.corp.example, address: 10.0.0.5, port: 8443, ca: corp.pem }, { name: x.example, address: "::1" }]
egress: { parentProxy: "http://proxy.corp.example:3128", extraCa: ca.pem, resolver: [9.9.9.9, "[::1]:5353"] }
callers:
  - { id: ci, token: file:ci.token, labels: { team: build } }
  - { id: ann, policy: team-b, token: env:ANN, socket: ann.sock }
telemetry: { metrics: true }
`);
  t.true(loaded.ok);
  if (!loaded.ok) return;
  t.deepEqual(loaded.warnings, []);
  t.deepEqual(loaded.config, {
    home,
    proxy: {
      listen: [
        { host: '127.0.0.1', port: 3128 },
        { host: '::1', port: 0 },
      ],
    },
    api: { listen: { host: '127.0.0.1', port: 3000 }, socket: `${home}/c.sock` },
    policies: { dir: `${home}/p`, default: 'team-a' },
    vault: { file: `${home}/v.sealed`, key: { kind: 'env', name: 'PASS' } },
    audit: {
      dir: '/var/log/s',
      fsync: 'always',
      checkpointEveryMs: 300_000,
      rotateBytes: 64 * 1024 ** 2,
      maxQueued: 4096,
    },
    upstreams: [
      { name: 'api.corp.example', address: '10.0.0.5', port: 8443, ca: `${home}/corp.pem` },
      { name: 'x.example', address: '::1', port: null, ca: null },
    ],
    egress: {
      parentProxy: { host: 'proxy.corp.example', port: 3128 },
      extraCa: `${home}/ca.pem`,
      resolver: ['9.9.9.9', '[::1]:5353'],
    },
    callers: [
      { id: 'ci', policy: 'team-a', token: `file:${home}/ci.token`, socket: null, labels: { team: 'build' } },
      { id: 'ann', policy: 'team-b', token: 'env:ANN', socket: `${home}/ann.sock`, labels: {} },
    ],
  });
});

test('loadConfig() lets flags win over the file', (t) => {
  const flags = { listen: ['127.0.0.1:0'], apiListen: 'off', policy: 'other' };
  const loaded = load('proxy: { listen: [127.0.0.1:1] }\napi: { listen: 127.0.0.1:2 }\npolicies: { default: a }', {
    flags,
  });
  t.true(loaded.ok);
  if (!loaded.ok) return;
  t.deepEqual(loaded.config.proxy.listen, [{ host: '127.0.0.1', port: 0 }]);
  t.is(loaded.config.api.listen, null);
  t.is(loaded.config.policies.default, 'other');
});

test('loadConfig() warns of a listener that is open to the network', (t) => {
  const loaded = load('proxy:\n  listen: [127.0.0.1:3128, 0.0.0.0:3129]');
  t.true(loaded.ok);
  t.deepEqual(loaded.ok && loaded.warnings.map((one) => [one.code, one.severity, one.line, one.column]), [
    ['CONFIG_EXPOSED', 'warning', 2, 28],
  ]);
});

test('configSchema() names every key that the loader knows', (t) => {
  const schema = JSON.stringify(configSchema());
  for (const key of ['proxy', 'ingress', 'callers', 'checkpointEvery', 'parentProxy', 'passphrase']) {
    t.true(schema.includes(`"${key}"`), key);
  }
});
