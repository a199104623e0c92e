import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { command, testNeeding } from '../../kit/require-system.ts';
import { runCommand } from '../../kit/run-command.ts';
import { gitEnvironment, makeRepository, startGitServer } from './git-server.ts';
import { scratch, startRig, succeeded } from './rig.ts';

const test = testNeeding(command('git'));
const testWithCurl = testNeeding(command('git'), command('curl'));

const policy = `
version: 1
name: git
rules:
  - name: git-discover
    effect: allow
    hosts: [git.acme.test]
    methods: [GET]
    paths: ["/acme/site.git/info/refs"]
    query: { service: git-upload-pack }
  - name: git-fetch
    effect: allow
    hosts: [git.acme.test]
    methods: [POST]
    paths: ["/acme/site.git/git-upload-pack"]
`;

async function startGit(t: ExecutionContext) {
  const root = await scratch(t);
  await makeRepository(root, 'acme/site.git', { name: 'hello.txt', text: 'hello\n' });
  const servers = {
    'git.acme.test': (certificate: Parameters<typeof startGitServer>[0]) => startGitServer(certificate, root),
  };
  const rig = await startRig(t, { policy, servers });
  const env = { ...gitEnvironment(rig.home), ...rig.env };
  const clone = join(rig.home, 'clone');
  const git = (...args: string[]) => runCommand('git', args, { env });
  return { rig, clone, git, root, env };
}

test('git clones over https when the policy allows upload-pack', async (t) => {
  const { rig, clone, git } = await startGit(t);
  succeeded(t, await git('clone', '-q', 'https://git.acme.test/acme/site.git', clone));
  t.is(await readFile(join(clone, 'hello.txt'), 'utf8'), 'hello\n');
  const recorded = await rig.recorded();
  t.is(recorded[0], 'allow GET git.acme.test /acme/site.git/info/refs');
  t.true(recorded.slice(1).every((line) => line === 'allow POST git.acme.test /acme/site.git/git-upload-pack'));
  t.true(recorded.length >= 2);
});

test('git push is refused when it asks for receive-pack', async (t) => {
  const { rig, clone, git } = await startGit(t);
  succeeded(t, await git('clone', '-q', 'https://git.acme.test/acme/site.git', clone));
  succeeded(t, await git('-C', clone, 'commit', '-q', '--allow-empty', '-m', 'second'));
  const pushed = await git('-C', clone, 'push', 'origin', 'main');
  t.is(pushed.code, 128);
  t.regex(pushed.stderr, /403/);
  t.is((await rig.recorded()).at(-1), 'deny GET git.acme.test /acme/site.git/info/refs');
  t.false(rig.servers['git.acme.test']?.seen.some((line) => line.includes('receive-pack')));
});

testWithCurl('git-receive-pack itself is refused to a client that skips the discovery', async (t) => {
  const { rig, root, env } = await startGit(t);
  const type = 'Content-Type: application/x-git-receive-pack-request';
  const url = 'https://git.acme.test/acme/site.git/git-receive-pack';
  const done = await runCommand('curl', ['-sS', '-H', type, '--data-binary', '0000', url], { env, cwd: root });
  t.regex(done.stdout, /"code":"default_denied"/);
  t.is((await rig.recorded()).at(-1), 'deny POST git.acme.test /acme/site.git/git-receive-pack');
  t.deepEqual(rig.servers['git.acme.test']?.seen, []);
});

test('the repository takes the push when the gateway is not asked', async (t) => {
  const { rig, clone, git } = await startGit(t);
  succeeded(t, await git('clone', '-q', 'https://git.acme.test/acme/site.git', clone));
  succeeded(t, await git('-C', clone, 'commit', '-q', '--allow-empty', '-m', 'second'));
  const direct = ['-c', 'http.sslVerify=false', '-c', 'http.proxy='];
  const url = `https://127.0.0.1:${rig.servers['git.acme.test']?.port}/acme/site.git`;
  succeeded(t, await git('-C', clone, ...direct, 'push', '-q', url, 'main'));
});
