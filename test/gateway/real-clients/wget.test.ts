import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { command, testNeeding } from '../../kit/require-system.ts';
import { runCommand } from '../../kit/run-command.ts';
import { startRig, succeeded } from './rig.ts';
import { type RefusalBody, webPolicy, webServers } from './web.ts';

const test = testNeeding(command('wget'));

/** wget built on GnuTLS reads no variable for its authorities; WGETRC is its way to be configured by environment. */
async function startWeb(t: ExecutionContext) {
  const rig = await startRig(t, { policy: webPolicy, servers: webServers });
  const wgetrc = join(rig.home, 'wgetrc');
  await writeFile(wgetrc, `ca_certificate = ${rig.env.SSL_CERT_FILE}\ntries = 1\n`);
  return { ...rig, env: { ...rig.env, WGETRC: wgetrc } };
}

test('wget reads what the policy allows, over https and http', async (t) => {
  const rig = await startWeb(t);
  const urls = ['https://api.acme.test/open/a', 'http://plain.acme.test/open/b'];
  const done = await runCommand('wget', ['-nv', '-O', '-', ...urls], { env: rig.env });
  succeeded(t, done);
  t.is(done.stdout, 'you asked for /open/a\nyou asked for /open/b\n');
  t.deepEqual(await rig.recorded(), ['allow GET api.acme.test /open/a', 'allow GET plain.acme.test /open/b']);
});

test('wget shows the refusal as JSON with the rule that refused', async (t) => {
  const rig = await startWeb(t);
  const args = ['-nv', '--content-on-error', '-O', '-', 'https://api.acme.test/secret/a'];
  const done = await runCommand('wget', args, { env: rig.env });
  t.is(done.code, 8);
  t.is((JSON.parse(done.stdout) as RefusalBody).error.rule, 'nothing-secret');
  t.deepEqual(rig.servers['api.acme.test']?.seen, []);
  t.deepEqual(await rig.recorded(), ['deny GET api.acme.test /secret/a']);
});
