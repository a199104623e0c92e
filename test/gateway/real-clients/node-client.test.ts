import test, { type ExecutionContext } from 'ava';
import { runCommand } from '../../kit/run-command.ts';
import { startRig, succeeded } from './rig.ts';
import { type RefusalBody, webPolicy, webServers } from './web.ts';

/** Each prints status and body of the URLs in argv; resolved from this file's folder so that undici is found. */
const programs = {
  'fetch with EnvHttpProxyAgent': `
    import { EnvHttpProxyAgent, setGlobalDispatcher } from 'undici';
    setGlobalDispatcher(new EnvHttpProxyAgent());
    for (const url of process.argv.slice(1)) {
      const answer = await fetch(url);
      console.log(JSON.stringify([answer.status, await answer.text()]));
    }`,
  'undici request with EnvHttpProxyAgent': `
    import { EnvHttpProxyAgent, request } from 'undici';
    const dispatcher = new EnvHttpProxyAgent();
    for (const url of process.argv.slice(1)) {
      const answer = await request(url, { dispatcher });
      console.log(JSON.stringify([answer.statusCode, await answer.body.text()]));
    }`,
};

for (const [name, source] of Object.entries(programs)) {
  test(`Node ${name} reads what the policy allows and sees the refusal`, async (t: ExecutionContext) => {
    const rig = await startRig(t, { policy: webPolicy, servers: webServers });
    const urls = ['https://api.acme.test/open/a', 'http://plain.acme.test/open/b', 'https://api.acme.test/secret/c'];
    const done = await runCommand(process.execPath, ['--input-type=module', '-e', source, ...urls], {
      env: rig.env,
      cwd: import.meta.dirname,
    });
    succeeded(t, done);
    const answers = done.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as [number, string]);
    t.deepEqual(answers.slice(0, 2), [
      [200, 'you asked for /open/a\n'],
      [200, 'you asked for /open/b\n'],
    ]);
    t.is(answers[2]?.[0], 403);
    t.is((JSON.parse(answers[2]?.[1] ?? '') as RefusalBody).error.rule, 'nothing-secret');
    t.deepEqual(await rig.recorded(), [
      'allow GET api.acme.test /open/a',
      'allow GET plain.acme.test /open/b',
      'deny GET api.acme.test /secret/c',
    ]);
  });
}
