import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { command, testNeeding } from '../../kit/require-system.ts';
import { runCommand } from '../../kit/run-command.ts';
import { npmEnvironment, packModule, startRegistry } from './npm-registry.ts';
import { scratch, startRig, succeeded } from './rig.ts';

const test = testNeeding(command('npm'));

const policy = `
version: 1
name: npm
rules:
  - name: npm-install
    effect: allow
    hosts: [registry.acme.test]
    methods: [GET]
    paths: ["/**"]
    encodedSlash: true
`;

async function startNpm(t: ExecutionContext) {
  const home = await scratch(t);
  const widget = await packModule(home, '@acme/widget', 'a widget');
  const stray = await packModule(home, '@acme/stray', 'not from here');
  const packages = [
    { name: '@acme/widget', tarball: widget, tarballUrl: 'https://registry.acme.test/@acme/widget/-/widget-1.0.0.tgz' },
    { name: '@acme/stray', tarball: stray, tarballUrl: 'https://elsewhere.acme.test/@acme/stray/-/stray-1.0.0.tgz' },
  ];
  const start = (certificate: Parameters<typeof startRegistry>[0]) => startRegistry(certificate, packages);
  const rig = await startRig(
    t,
    { policy, servers: { 'registry.acme.test': start, 'elsewhere.acme.test': start } },
    home,
  );
  const project = join(home, 'project');
  await mkdir(project);
  await writeFile(join(project, 'package.json'), '{"name":"project","version":"1.0.0"}');
  const env = { ...npmEnvironment(home), ...rig.env, npm_config_registry: 'https://registry.acme.test/' };
  return { rig, project, npm: (...args: string[]) => runCommand('npm', args, { cwd: project, env }) };
}

test('npm installs a scoped package', async (t) => {
  const { rig, project, npm } = await startNpm(t);
  succeeded(t, await npm('install', '@acme/widget'));
  t.regex(await readFile(join(project, 'node_modules/@acme/widget/index.js'), 'utf8'), /a widget/);
  t.deepEqual(await rig.recorded(), [
    'allow GET registry.acme.test /@acme%2Fwidget',
    'allow GET registry.acme.test /@acme/widget/-/widget-1.0.0.tgz',
  ]);
});

test('P18 npm cannot follow metadata to a tarball on a host no rule names', async (t) => {
  const { rig, npm } = await startNpm(t);
  const done = await npm('install', '@acme/stray');
  t.not(done.code, 0);
  t.regex(done.stderr, /403/);
  t.deepEqual(rig.servers['elsewhere.acme.test']?.seen, []);
  await rig.gateway.audit.find((line) => line.verdict === 'deny' && line.request?.host === 'elsewhere.acme.test');
});

test('npm cannot publish', async (t) => {
  const { rig, npm } = await startNpm(t);
  const done = await npm('publish', '--//registry.acme.test/:_authToken=x');
  t.not(done.code, 0);
  t.true((await rig.recorded()).includes('deny PUT registry.acme.test /project'));
  t.false(rig.servers['registry.acme.test']?.seen.some((line) => line.startsWith('PUT')));
});
