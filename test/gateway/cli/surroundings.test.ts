import test from 'ava';
import fc from 'fast-check';
import { childEnvironment } from '../../../gateway/cli/child-environment.ts';
import { plainText } from '../../../gateway/cli/plain-text.ts';
import { unsafeSettings } from '../../../gateway/cli/process-hygiene.ts';
import { recordText } from '../../../gateway/cli/record-text.ts';
import { secretNames } from '../../../gateway/cli/secret-names.ts';
import { loadConfig } from '../../../gateway/config/index.ts';
import { loadPolicy } from '../../../policy/index.ts';

const attached = {
  proxyUrl: 'http://id:token@127.0.0.1:1',
  caBundlePath: '/ca.pem',
  environment: { SALLYPORT_PLACEHOLDER_GITHUB: 'stand-in' },
};

function childOf(env: Record<string, string>, secrets: string[] = []) {
  return childEnvironment({ env, attached, secretNames: secrets });
}

test('childEnvironment() points every proxy and CA variable at the gateway', (t) => {
  const env = childOf({ PATH: '/bin', HTTPS_PROXY: 'http://other:1', SSL_CERT_FILE: '/other.pem' });
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY']) {
    t.is(env[name], attached.proxyUrl);
    t.is(env[name.toLowerCase()], attached.proxyUrl);
  }
  const ca = [
    'SSL_CERT_FILE',
    'NODE_EXTRA_CA_CERTS',
    'REQUESTS_CA_BUNDLE',
    'CURL_CA_BUNDLE',
    'GIT_SSL_CAINFO',
    'PIP_CERT',
  ];
  for (const name of [...ca, 'CARGO_HTTP_CAINFO', 'AWS_CA_BUNDLE', 'DENO_CERT']) t.is(env[name], '/ca.pem', name);
  t.like(env, { PATH: '/bin', NODE_USE_ENV_PROXY: '1', SALLYPORT_PLACEHOLDER_GITHUB: 'stand-in' });
});

test('childEnvironment() empties every list of names that would go around the gateway', (t) => {
  const env = childOf({ NO_PROXY: '*', no_proxy: 'evil.example', npm_config_noproxy: '*', No_Proxy: '*' });
  t.is(env.NO_PROXY, '');
  t.is(env.no_proxy, '');
  t.is(env.npm_config_noproxy, undefined);
  t.is(env.No_Proxy, undefined);
});

/** Variables of the parent; what must not reach the child. */
const withheld: [string, Record<string, string>, string[]][] = [
  ['secrets that a reference names', { API_KEY: 's3cret' }, ['API_KEY']],
  ['our own variables', { SALLYPORT_HOME: '/h', SALLYPORT_PASSPHRASE: 's3cret', sallyport_x: '1' }, []],
  ['other proxies', { ftp_proxy: 'http://x', npm_config_https_proxy: 'http://x', npm_config_proxy: 'http://x' }, []],
];
for (const [name, parent, secrets] of withheld) {
  test(`childEnvironment() withholds ${name}`, (t) => {
    const env = childOf(parent, secrets);
    for (const variable of Object.keys(parent)) t.is(env[variable], undefined, variable);
  });
}

test('childEnvironment() keeps a variable that only looks like a secret', (t) => {
  t.is(childOf({ API_KEY_ID: 'x' }, ['API_KEY']).API_KEY_ID, 'x');
});

test('secretNames() finds the references of policies, callers and passphrase', (t) => {
  const loaded = loadConfig({
    flags: {},
    env: {},
    user: { isRoot: false, home: '/h' },
    readFile: () =>
      'callers: [{ id: a, token: env:CALLER }, { id: b, token: file:t }]\nvault: { passphrase: env:PASS }',
  });
  const policy = loadPolicy(
    `version: 1
name: a
rules: [{ name: r, effect: allow, hosts: [a.example.com] }]
credentials:
  - { name: one, secret: env:ONE, bind: { hosts: [a.example.com] }, inject: { header: x-one, format: "{secret}" } }
  - { name: two, secret: vault:two, bind: { hosts: [a.example.com] }, inject: { header: x-two, format: "{secret}" } }
`,
    { file: 'a.yaml' },
  );
  t.true(loaded.ok && policy.ok);
  if (loaded.ok && policy.ok)
    t.deepEqual([...secretNames(loaded.config, [policy.document])].sort(), ['CALLER', 'ONE', 'PASS']);
});

const unsafe: [string, string[], Record<string, string>, boolean][] = [
  ['nothing', [], {}, false],
  ['source maps', ['--enable-source-maps'], { NODE_OPTIONS: '--max-old-space-size=512' }, false],
  ['--inspect', ['--inspect'], {}, true],
  ['--inspect=0', ['--inspect=0'], {}, true],
  ['--inspect-brk', ['--inspect-brk=127.0.0.1:1'], {}, true],
  ['--inspect_brk', ['--inspect_brk'], {}, true],
  ['--inspect-port alone', ['--inspect-port=1'], {}, true],
  ['--heapsnapshot-signal', ['--heapsnapshot-signal=SIGUSR2'], {}, true],
  ['NODE_OPTIONS', [], { NODE_OPTIONS: '--no-warnings --inspect' }, true],
  ['quoted NODE_OPTIONS', [], { NODE_OPTIONS: '"--inspect=1"' }, true],
  ['a heap snapshot near the limit', [], { NODE_OPTIONS: '--heapsnapshot-near-heap-limit=1' }, true],
  ['reports', ['--report-on-signal'], {}, true],
  ['a core at a crash', ['--abort-on-uncaught-exception'], {}, true],
  ['TLS keys in a file', ['--tls-keylog=/tmp/k'], {}, true],
  ['TLS verification off', [], { NODE_TLS_REJECT_UNAUTHORIZED: '0' }, true],
  ['TLS verification on', [], { NODE_TLS_REJECT_UNAUTHORIZED: '1' }, false],
];
for (const [name, execArgv, env, isUnsafe] of unsafe) {
  test(`unsafeSettings() ${isUnsafe ? 'refuses' : 'takes'} ${name}`, (t) => {
    t.is(unsafeSettings({ execArgv, env, isInspected: false }).length > 0, isUnsafe);
  });
}

test('unsafeSettings() sees an inspector that was opened in another way', (t) => {
  t.is(unsafeSettings({ execArgv: [], env: {}, isInspected: true }).length, 1);
});

test('plainText() lets nothing through that acts on a terminal', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const plain = plainText(text, 50);
      return !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(plain) && plain.length <= 51 && plainText(plain, 60) === plain;
    }),
  );
  t.pass();
});

test('recordText() shows a refused request in one line, cleaned', (t) => {
  const line = recordText({
    v: 1,
    seq: 1,
    id: '01J',
    time: '2026-01-01T00:00:00.000000Z',
    node: 'n',
    kind: 'http.request',
    prev: '0',
    hash: '0',
    verdict: 'deny',
    sandbox: { id: 'ci', labels: {} },
    rule: 'no-deletes',
    code: 'policy_denied',
    reason: 'Nothing\nmay\u001b[2J delete.',
    request: { method: 'DELETE', scheme: 'https', host: 'a.example', port: 443, path: '/x', query: 'k=…', bytes: 0 },
    response: { status: 403 },
    credential: null,
  });
  t.is(
    line,
    '2026-01-01T00:00:00.000000Z  deny  http.request  ci  DELETE https://a.example:443/x?k=…  rule=no-deletes  status=403  "Nothing / may\u{FFFD}[2J delete."  01J',
  );
});
