import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { command, testNeeding } from '../../kit/require-system.ts';
import { runCommand } from '../../kit/run-command.ts';
import { buildWheel, startIndex } from './python-index.ts';
import { startRig, succeeded } from './rig.ts';

const test = testNeeding(command('pip3', 'python3-pip'));

const policy = `
version: 1
name: pip
rules:
  - name: index
    effect: allow
    hosts: [pypi.acme.test]
    methods: [GET]
    paths: ["/simple/**"]
  - name: files
    effect: allow
    hosts: [files.acme.test]
    methods: [GET]
    paths: ["/packages/**"]
`;

const wheel = buildWheel('acme_widget', '1.0.0');
const files = [
  { project: 'acme-widget', url: 'https://files.acme.test/packages/acme_widget-1.0.0-py3-none-any.whl', bytes: wheel },
  {
    project: 'acme-stray',
    url: 'https://elsewhere.acme.test/packages/acme_stray-1.0.0-py3-none-any.whl',
    bytes: buildWheel('acme_stray', '1.0.0'),
  },
];

async function startPip(t: ExecutionContext) {
  const start = (certificate: Parameters<typeof startIndex>[0]) => startIndex(certificate, files);
  const names = ['pypi.acme.test', 'files.acme.test', 'elsewhere.acme.test'];
  const rig = await startRig(t, { policy, servers: Object.fromEntries(names.map((name) => [name, start])) });
  const env = {
    ...rig.env,
    PIP_CONFIG_FILE: '/dev/null',
    PIP_DISABLE_PIP_VERSION_CHECK: '1',
    PIP_NO_CACHE_DIR: '1',
    PIP_RETRIES: '0',
    PIP_INDEX_URL: 'https://pypi.acme.test/simple/',
  };
  const download = (name: string) =>
    runCommand('pip3', ['download', '-q', '--no-deps', '-d', rig.home, name], { env, cwd: rig.home });
  return { rig, download };
}

test('pip downloads a wheel from the index and the host of its files', async (t) => {
  const { rig, download } = await startPip(t);
  succeeded(t, await download('acme-widget'));
  t.deepEqual(await readFile(join(rig.home, 'acme_widget-1.0.0-py3-none-any.whl')), wheel);
  t.true((await rig.recorded()).includes('allow GET pypi.acme.test /simple/acme-widget/'));
  t.true((await rig.recorded()).includes('allow GET files.acme.test /packages/acme_widget-1.0.0-py3-none-any.whl'));
});

test('P18 pip cannot follow the index to a file on a host no rule names', async (t) => {
  const { rig, download } = await startPip(t);
  const done = await download('acme-stray');
  t.not(done.code, 0);
  t.regex(done.stdout + done.stderr, /403/);
  t.deepEqual(rig.servers['elsewhere.acme.test']?.seen, []);
});
