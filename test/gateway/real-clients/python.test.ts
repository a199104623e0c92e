import { spawnSync } from 'node:child_process';
import { type Capability, capability, command, testNeeding } from '../../kit/require-system.ts';
import { runCommand } from '../../kit/run-command.ts';
import { startRig, succeeded } from './rig.ts';
import { type RefusalBody, webPolicy, webServers } from './web.ts';

const printer = 'import json, sys\ndef show(status, text): print(json.dumps([status, text]))\n';
const urllib = `${printer}
import urllib.error, urllib.request
for url in sys.argv[1:]:
  try:
    with urllib.request.urlopen(url) as answer: show(answer.status, answer.read().decode())
  except urllib.error.HTTPError as error: show(error.code, error.read().decode())
`;
const requests = (module: string): string => `${printer}
from ${module} import Session
session = Session()
for url in sys.argv[1:]:
  answer = session.get(url)
  show(answer.status_code, answer.text)
`;

const requestsModule = ['requests', 'pip._vendor.requests'].find(
  (name) => spawnSync('python3', ['-c', `import ${name}`]).status === 0,
);
const python = command('python3');
const programs: readonly [name: string, source: string, needs: readonly Capability[]][] = [
  ['urllib', urllib, [python]],
  [
    requestsModule ?? 'requests',
    requests(requestsModule ?? 'requests'),
    [
      python,
      capability(
        'requests',
        requestsModule === undefined ? 'the Python module requests is not installed (Debian: python3-requests)' : null,
      ),
    ],
  ],
];

for (const [name, source, needs] of programs) {
  testNeeding(...needs)(`Python ${name} reads what the policy allows and sees the refusal`, async (t) => {
    const rig = await startRig(t, { policy: webPolicy, servers: webServers });
    const urls = ['https://api.acme.test/open/a', 'http://plain.acme.test/open/b', 'https://api.acme.test/secret/c'];
    const done = await runCommand('python3', ['-c', source, ...urls], { env: rig.env });
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
