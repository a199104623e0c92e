import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { type Gateway, startControlApi } from '../../../gateway/api/index.ts';
import { fakeGateway } from '../api/fake-gateway.ts';
import { command, temporaryFolder } from './command-line.ts';

async function home(t: ExecutionContext, gateway: Gateway): Promise<string> {
  const folder = temporaryFolder(t);
  const api = await startControlApi(gateway, join(folder, 'run', 'control.sock'));
  t.teardown(() => api.close());
  return folder;
}

const refused = { ok: false, generation: 1, problems: 'default.yaml:3:1: error POLICY_UNKNOWN_KEY: no' };
const through = { ok: false, checks: [{ name: 'metadata', ok: false, leaked: false, expected: '403', got: '200' }] };

const table: [string, string[], Parameters<typeof fakeGateway>[0], number, string][] = [
  ['status', ['status'], {}, 0, 'traffic      judged by policy'],
  ['status --json', ['status', '--json'], {}, 0, '"generation": 1'],
  ['status while it refuses', ['status'], { refusing: 'a canary got through' }, 1, 'REFUSED: a canary got through'],
  ['reload', ['reload'], {}, 0, 'generation 2 is in force'],
  ['reload that is refused', ['reload'], { reload: async () => refused }, 1, 'POLICY_UNKNOWN_KEY'],
  ['reload that is refused, as JSON', ['reload', '--json'], { reload: async () => refused }, 1, '"ok": false'],
  ['selftest', ['selftest'], {}, 0, 'the boundary holds'],
  ['selftest that fails', ['selftest'], { selftest: async () => through }, 1, 'FAIL  metadata: expected 403, got 200'],
  ['selftest that fails, as JSON', ['selftest', '--json'], { selftest: async () => through }, 1, '"expected": "403"'],
];
for (const [name, args, changes, code, part] of table) {
  test(`sallyport ${name} exits ${code}`, async (t) => {
    const outcome = await command([...args, '--home', await home(t, fakeGateway(changes))]);
    t.is(outcome.code, code, outcome.stderr);
    t.true(outcome.stdout.includes(part), outcome.stdout);
  });
}

test('run asks a running gateway for an identity and gives it back', async (t) => {
  const detached: string[] = [];
  const gateway = fakeGateway({
    detach: async (id) => {
      detached.push(id);
      return true;
    },
  });
  const folder = await home(t, gateway);
  const outcome = await command(['run', '--home', folder, '--policy', 'agent', '--label', 'task=42', '--', 'true']);
  t.is(outcome.code, 0, outcome.stderr);
  t.true(outcome.stderr.includes('kernel enforcement: off'));
  t.like(gateway.calls, [['attach', { policy: 'agent', labels: { task: '42' } }]]);
  t.deepEqual(detached, ['sbx-1']);
});

test('run --quiet says nothing of its own', async (t) => {
  const outcome = await command(['run', '--quiet', '--home', await home(t, fakeGateway()), '--', 'true']);
  t.deepEqual(outcome, { code: 0, stdout: '', stderr: '' });
});

const ends: [string, string[], number][] = [
  ['its code', ['sh', '-c', 'exit 7'], 7],
  ['128 + n after a signal', ['sh', '-c', 'kill -TERM $$'], 143],
  ['127 when it is not there', ['no-such-command-here'], 127],
  ['126 when it may not be executed', ['/etc'], 126],
];
for (const [name, words, code] of ends) {
  test(`run passes on ${name}`, async (t) => {
    const outcome = await command(['run', '--quiet', '--home', await home(t, fakeGateway()), '--', ...words]);
    t.is(outcome.code, code, outcome.stderr);
  });
}

test('run does not start while the running gateway refuses all traffic', async (t) => {
  const folder = await home(t, fakeGateway({ refusing: 'a canary got through' }));
  const outcome = await command(['run', '--home', folder, '--', 'true']);
  t.is(outcome.code, 2);
  t.true(outcome.stderr.includes('GATEWAY_SELFTEST_FAILED'), outcome.stderr);
});
