import type { ExecutionContext } from 'ava';
import { command, testNeeding } from '../../kit/require-system.ts';
import { runCommand } from '../../kit/run-command.ts';
import { startRig, succeeded } from './rig.ts';
import { type RefusalBody, webPolicy, webServers } from './web.ts';

const test = testNeeding(command('curl'));
const startWeb = (t: ExecutionContext) => startRig(t, { policy: webPolicy, servers: webServers });

test('curl reads what the policy allows, over https and http', async (t) => {
  const rig = await startWeb(t);
  const urls = ['https://api.acme.test/open/a', 'http://plain.acme.test/open/b'];
  const done = await runCommand('curl', ['-sS', ...urls], { env: rig.env });
  succeeded(t, done);
  t.is(done.stdout, 'you asked for /open/a\nyou asked for /open/b\n');
  t.deepEqual(await rig.recorded(), ['allow GET api.acme.test /open/a', 'allow GET plain.acme.test /open/b']);
});

test('curl shows the refusal as JSON with the rule that refused', async (t) => {
  const rig = await startWeb(t);
  for (const url of ['https://api.acme.test/secret/a', 'http://plain.acme.test/secret/b']) {
    const done = await runCommand('curl', ['-sS', '-w', '\n%{http_code} %{content_type}', url], { env: rig.env });
    succeeded(t, done);
    const [body = '', ending] = done.stdout.trim().split(/\n+/);
    const { error } = JSON.parse(body) as RefusalBody;
    t.deepEqual(
      [error.code, error.rule, error.reason],
      ['policy_denied', 'nothing-secret', 'Nobody reads the secrets.'],
    );
    t.is(ending, '403 application/json');
    t.is((await rig.gateway.audit.find((line) => line.id === error.requestId)).rule, 'nothing-secret');
  }
  t.deepEqual([rig.servers['api.acme.test']?.seen, rig.servers['plain.acme.test']?.seen], [[], []]);
});

test('curl is told on CONNECT when no rule names the host', async (t) => {
  const rig = await startWeb(t);
  const done = await runCommand('curl', ['-sS', 'https://other.acme.test/'], { env: rig.env });
  t.is(done.code, 56);
  t.regex(done.stderr, /403/);
});
