import { X509Certificate } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { command, temporaryFolder } from './command-line.ts';

const policy = `version: 1
name: site
rules:
  - { name: read, effect: allow, hosts: [api.example.com], methods: [GET], paths: ["/a/**"] }
tests:
  - { request: GET https://api.example.com/a/b, expect: allow, rule: read }
`;
const failing = policy.replace('expect: allow, rule: read', 'expect: deny');
const unknownKey = policy.replace('effect:', 'efect:');

/** Arguments ({home}, {good}, {bad}, {typo} are replaced), exit code, a part of stdout, a part of stderr. */
const table: [string, string[], number, string | RegExp, string | RegExp][] = [
  ['no command', [], 2, /^$/, 'Usage: sallyport'],
  ['--help', ['--help'], 0, 'Examples:', /^$/],
  ['--version', ['--version'], 0, /^\d+\.\d+\.\d+\n$/, /^$/],
  ['an unknown command', ['polcy'], 2, /^$/, 'Did you mean policy?'],
  ['an unknown option', ['doctor', '--jsn'], 2, /^$/, 'Did you mean --json?'],
  ['a group without a command', ['policy'], 2, /^$/, 'Usage: sallyport policy'],
  [
    'policy check of a good file',
    ['policy', 'check', '{good}'],
    0,
    'ok: site, 1 rules, 0 credentials, 1 tests passed',
    /^$/,
  ],
  ['policy check of a typo', ['policy', 'check', '{typo}'], 1, /typo\.yaml:4:\d+: error POLICY_UNKNOWN_KEY/, /^$/],
  ['policy check of several files', ['policy', 'check', '{good}', '{typo}'], 1, 'ok: site', /^$/],
  ['policy check of a missing file', ['policy', 'check', '{home}/none.yaml'], 2, /^$/, 'ENOENT'],
  ['policy check without a file', ['policy', 'check'], 2, /^$/, "missing required argument 'files'"],
  [
    'policy test of a good file',
    ['policy', 'test', '{good}'],
    0,
    'ok    GET https://api.example.com/a/b: allow by rule read',
    /^$/,
  ],
  ['policy test that fails', ['policy', 'test', '{bad}'], 1, /bad\.yaml:6:/, /^$/],
  [
    'policy explain of an allowed request',
    ['policy', 'explain', '{good}', 'GET https://api.example.com/a/x'],
    0,
    'rule        read',
    /^$/,
  ],
  [
    'policy explain of a denied request',
    ['policy', 'explain', '{good}', 'GET https://api.example.com/b'],
    1,
    'verdict     deny',
    /^$/,
  ],
  [
    'policy explain without a method',
    ['policy', 'explain', '{good}', 'https://api.example.com/a/x'],
    0,
    'verdict     allow',
    /^$/,
  ],
  ['policy explain of what is no URL', ['policy', 'explain', '{good}', 'GET http//x'], 1, 'before any rule', /^$/],
  ['policy explain of three words', ['policy', 'explain', '{good}', 'GET x y'], 2, /^$/, "expected 'METHOD URL'"],
  [
    'policy explain with a file that does not load',
    ['policy', 'explain', '{typo}', 'GET https://a.b/'],
    1,
    'POLICY_UNKNOWN_KEY',
    /^$/,
  ],
  ['policy schema', ['policy', 'schema'], 0, '"$schema"', /^$/],
  ['audit schema', ['audit', 'schema'], 0, '"$schema"', /^$/],
  ['audit verify of nothing', ['audit', 'verify', '--home', '{home}/none'], 2, /^$/, 'GATEWAY_AUDIT_FAILED'],
  ['audit verify with a wrong head', ['audit', 'verify', '--expect-head', 'x'], 2, /^$/, 'SEQ:HASH'],
  ['audit tail with a wrong count', ['audit', 'tail', '-n', '-1'], 2, /^$/, 'from 0 to 10000'],
  ['audit tail with a wrong id', ['audit', 'tail', '--id', 'x'], 2, /^$/, '26 letters and digits'],
  ['audit tail with a wrong verdict', ['audit', 'tail', '--verdict', 'maybe'], 2, /^$/, 'Allowed choices are allow'],
  ['status without a gateway', ['status', '--home', '{home}/none'], 2, /^$/, /GATEWAY_NOT_RUNNING\)\n.*sallyport up/],
  ['reload without a gateway', ['reload', '--home', '{home}/none'], 2, /^$/, 'none is running'],
  ['selftest without a gateway', ['selftest', '--home', '{home}/none'], 2, /^$/, 'none is running'],
  ['vault list without a vault', ['vault', 'list', '--home', '{home}/none'], 2, /^$/, 'sallyport vault init'],
  [
    'a wrong configuration',
    ['doctor', '--config', '{config}'],
    2,
    /^$/,
    /sallyport\.yaml:1:1: error CONFIG_UNKNOWN_KEY.*\n.*\n?.*proxy/,
  ],
  ['a missing configuration', ['doctor', '--config', '{home}/none.yaml'], 2, /^$/, 'CONFIG_UNREADABLE'],
  ['run without a command', ['run'], 2, /^$/, "missing required argument 'command'"],
  ['run with a wrong label', ['run', '--label', 'x', '--', 'true'], 2, /^$/, 'expected key=value'],
  [
    'run with a policy file that is not there',
    ['run', '--home', '{home}/h', '--policy', './none.yaml', '--', 'true'],
    2,
    /^$/,
    'ENOENT',
  ],
  ['completion for no shell', ['completion'], 2, /^$/, "missing required argument 'shell'"],
  ['completion for an unknown shell', ['completion', 'tcsh'], 2, /^$/, 'Allowed choices are bash, zsh, fish'],
];

for (const [name, args, code, stdout, stderr] of table) {
  test(`sallyport exits ${code} on ${name}`, async (t) => {
    const home = temporaryFolder(t);
    const files = { good: policy, bad: failing, typo: unknownKey };
    for (const [file, text] of Object.entries(files)) writeFileSync(join(home, `${file}.yaml`), text);
    writeFileSync(join(home, 'sallyport.yaml'), 'prxy: {}\n');
    const places: Record<string, string> = { home, config: join(home, 'sallyport.yaml') };
    for (const file of Object.keys(files)) places[file] = join(home, `${file}.yaml`);
    const given = args.map((arg) => arg.replace(/\{(\w+)\}/, (_all, place: string) => places[place] ?? ''));
    const outcome = await command(given, { env: { SALLYPORT_HOME: join(home, 'unused') } });
    t.is(outcome.code, code, outcome.stderr + outcome.stdout);
    matches(outcome.stdout, stdout);
    matches(outcome.stderr, stderr);

    function matches(text: string, part: string | RegExp): void {
      t.true(typeof part === 'string' ? text.includes(part) : part.test(text), text);
    }
  });
}

const json: [string, string[], number, string[]][] = [
  ['policy check', ['policy', 'check', '{good}'], 0, ['0.ok', '0.policy.digest']],
  ['policy check of a typo', ['policy', 'check', '{typo}'], 1, ['0.problems.0.line']],
  ['policy test', ['policy', 'test', '{good}'], 0, ['0.tests.0.passed']],
  ['policy explain', ['policy', 'explain', '{good}', 'GET https://api.example.com/b'], 1, ['decision.code']],
  ['policy explain of no URL', ['policy', 'explain', '{good}', 'GET http//x'], 1, ['refused.code']],
  ['doctor', ['doctor'], 0, ['ok', 'checks.0.state']],
  ['status without a gateway', ['status'], 2, ['error.code', 'error.message']],
  ['vault list without a vault', ['vault', 'list'], 2, ['error.code']],
  ['a missing file', ['policy', 'check', '{home}/none.yaml'], 2, ['error.message']],
];
for (const [name, args, code, paths] of json) {
  test(`--json of ${name} is one document`, async (t) => {
    const home = temporaryFolder(t);
    writeFileSync(join(home, 'good.yaml'), policy);
    writeFileSync(join(home, 'typo.yaml'), unknownKey);
    writeFileSync(join(home, 'sallyport.yaml'), 'proxy: { listen: ["127.0.0.1:0"] }\n');
    const given = args.map((arg) =>
      arg.replace(/\{(\w+)\}/, (_all, place) => (place === 'home' ? home : join(home, `${place}.yaml`))),
    );
    const outcome = await command([...given, '--json'], { env: { SALLYPORT_HOME: home } });
    t.is(outcome.code, code, outcome.stderr + outcome.stdout);
    const document: unknown = JSON.parse(outcome.stdout);
    for (const path of paths) t.not(at(document, path), undefined, path);
  });
}

function at(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((found, step) => {
    return typeof found === 'object' && found !== null
      ? Object.getOwnPropertyDescriptor(found, step)?.value
      : undefined;
  }, value);
}

test('a message about a file holds no terminal escape of its name', async (t) => {
  const outcome = await command(['policy', 'check', '\u001b[2J\u202enone.yaml']);
  t.is(outcome.code, 2);
  t.false(/[\u001b\u202e]/.test(outcome.stderr));
});

test('ca show makes the home at first use and says so, ca export prints the same certificate again', async (t) => {
  const home = join(temporaryFolder(t), 'home');
  const shown = await command(['ca', 'show', '--json', '--home', home]);
  t.is(shown.code, 0, shown.stderr);
  t.true(shown.stderr.includes(`made ${home}`));
  const { fingerprint256 } = JSON.parse(shown.stdout) as { fingerprint256: string };
  const exported = await command(['ca', 'export', '--home', home]);
  t.true(exported.stdout.startsWith('-----BEGIN CERTIFICATE-----\n'));
  t.is(exported.stderr, '');
  t.is(new X509Certificate(exported.stdout).fingerprint256, fingerprint256);
});

test('the starter policy of a fresh home passes policy check --strict and policy test', async (t) => {
  const home = join(temporaryFolder(t), 'home');
  await command(['ca', 'show', '--home', home]);
  const file = join(home, 'policies', 'default.yaml');
  for (const args of [['check', '--strict'], ['test']]) {
    const outcome = await command(['policy', ...args, file]);
    t.is(outcome.code, 0, outcome.stdout);
  }
  // What its comments say can be uncommented as it stands.
  const opened = readFileSync(file, 'utf8')
    .replace(/^rules: \[\]$/m, 'rules:')
    .replace(/^credentials: \[\]$/m, 'credentials:')
    .replace(/^# {2}( *[-a-z])/gm, '  $1')
    .replace(/^ {4}( *(?!sallyport))/gm, '    $1');
  const uncommented = join(home, 'opened.yaml');
  writeFileSync(uncommented, opened.replace(/^ +sallyport .*$/gm, ''));
  const outcome = await command(['policy', 'check', uncommented]);
  t.is(outcome.code, 0, `${outcome.stdout}\n${opened}`);
  t.true(outcome.stdout.includes('1 rules, 1 credentials, 3 tests passed'));
});

test('a default policy under another name is not made up', async (t) => {
  const home = temporaryFolder(t);
  mkdirSync(join(home, 'policies'));
  writeFileSync(join(home, 'sallyport.yaml'), 'policies: { default: team-a }\n');
  await command(['ca', 'show', '--home', home]);
  t.deepEqual(readdirSync(join(home, 'policies')), []);
});
