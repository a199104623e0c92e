import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { command, testNeeding } from '../../kit/require-system.ts';
import { runCommand } from '../../kit/run-command.ts';
import { buildDebianPackage, startRepository, writeAptConfig } from './apt-repository.ts';
import { scratch, startRig, succeeded } from './rig.ts';

const test = testNeeding(command('apt-get', 'apt'), command('dpkg-deb', 'dpkg'));

const policy = `
version: 1
name: apt
rules:
  - name: apt-read
    effect: allow
    hosts: [deb.acme.test]
    methods: [GET]
    paths: ["/debian/*", "/debian/pool/**"]
`;

async function startApt(t: ExecutionContext) {
  const home = await scratch(t);
  const widget = await buildDebianPackage(home, 'acme-widget', 'pool/acme-widget_1.0_all.deb');
  const stray = await buildDebianPackage(home, 'acme-stray', 'stray/acme-stray_1.0_all.deb');
  const start = (certificate: Parameters<typeof startRepository>[0]) => startRepository(certificate, [widget, stray]);
  const rig = await startRig(t, { policy, servers: { 'deb.acme.test': start } }, home);
  const config = await writeAptConfig(home, 'deb [trusted=yes] https://deb.acme.test/debian ./');
  // apt reads the proxy from the environment, its authorities only from its own configuration.
  await appendFile(config, `Acquire::https::CaInfo "${rig.env.SSL_CERT_FILE}";\n`);
  const env = { ...rig.env, APT_CONFIG: config };
  const apt = (...args: string[]) => runCommand('apt-get', ['-q', ...args], { env, cwd: home });
  return { rig, apt, widget };
}

test('apt updates its lists and downloads a package', async (t) => {
  const { rig, apt, widget } = await startApt(t);
  succeeded(t, await apt('update'));
  succeeded(t, await apt('download', 'acme-widget'));
  t.deepEqual(await readFile(join(rig.home, 'acme-widget_1.0_all.deb')), widget.bytes);
  const recorded = await rig.recorded();
  t.true(recorded.includes('allow GET deb.acme.test /debian/Packages'));
  t.true(recorded.includes('allow GET deb.acme.test /debian/pool/acme-widget_1.0_all.deb'));
});

test('apt is refused a package outside the paths of the policy', async (t) => {
  const { rig, apt } = await startApt(t);
  succeeded(t, await apt('update'));
  const done = await apt('download', 'acme-stray');
  t.is(done.code, 100);
  t.regex(done.stderr, /403/);
  t.true((await rig.recorded()).includes('deny GET deb.acme.test /debian/stray/acme-stray_1.0_all.deb'));
  t.false(rig.servers['deb.acme.test']?.seen.some((line) => line.includes('stray')));
});
