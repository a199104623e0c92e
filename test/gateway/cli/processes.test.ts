import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, statSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { mainFile, started, temporaryFolder } from './command-line.ts';

/** A gateway as a process of its own, on a free port in a temporary home. */
interface GatewayProcess {
  readonly home: string;
  readonly child: ChildProcess;
  readonly log: () => string;
  /** Resolves once the log holds `text`. */
  waitFor(text: string): Promise<void>;
  stop(signal: NodeJS.Signals): Promise<number | null>;
}

async function gatewayProcess(t: ExecutionContext, args: readonly string[] = ['gateway']): Promise<GatewayProcess> {
  const home = join(temporaryFolder(t), 'h');
  const child = spawn(process.execPath, [mainFile, ...args, '--listen', '127.0.0.1:0', '--home', home], {
    env: { PATH: process.env.PATH ?? '', NODE_NO_WARNINGS: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let log = '';
  const waiting = new Set<() => void>();
  const add = (text: string): void => {
    log += text;
    for (const look of waiting) look();
  };
  child.stdout.setEncoding('utf8').on('data', add);
  child.stderr.setEncoding('utf8').on('data', add);
  const waitFor = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (!log.includes(text)) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      child.once('close', () => reject(new Error(`ended without "${text}":\n${log}`)));
      look();
    });
  const stop = async (signal: NodeJS.Signals): Promise<number | null> => {
    const closed = once(child, 'close');
    child.kill(signal);
    const [code]: (number | null)[] = await closed;
    return code ?? null;
  };
  await waitFor('traffic ');
  return { home, child, log: () => log, waitFor, stop };
}

test('up --check shows what happens end to end, exits 0 and leaves nothing behind', async (t) => {
  const folder = temporaryFolder(t);
  const outcome = await started(['up', '--check'], { env: { TMPDIR: folder, HOME: folder } });
  t.is(outcome.code, 0, outcome.stdout + outcome.stderr);
  for (const part of [
    'the boundary holds',
    '< 200 ',
    '"code":"policy_denied"',
    '"code":"never_list"',
    'hash chain whole',
    'all as expected',
  ]) {
    t.true(outcome.stdout.includes(part), part);
  }
  t.false(outcome.stdout.includes('FAIL'));
  t.deepEqual(readdirSync(folder), []);
});

test('up --check --json is one document', async (t) => {
  const folder = temporaryFolder(t);
  const outcome = await started(['up', '--check', '--json'], { env: { TMPDIR: folder, HOME: folder } });
  const report = JSON.parse(outcome.stdout) as { ok: boolean; steps: { name: string; ok: boolean }[] };
  t.true(report.ok);
  t.deepEqual(
    report.steps.map((step) => step.ok),
    [true, true, true, true, true, true],
  );
});

test('gateway serves the CLI, reloads at SIGHUP and stops in order at SIGTERM', async (t) => {
  const gateway = await gatewayProcess(t);
  const env = { SALLYPORT_HOME: gateway.home };
  t.true(gateway.log().includes('made the vault'));
  t.deepEqual(openToOthers(gateway.home), ['run/ca-bundle.pem']);
  const status = await started(['status', '--json'], { env });
  t.is(status.code, 0, status.stderr);
  t.like(JSON.parse(status.stdout), { refusing: null, policies: [{ name: 'default' }] });
  const ran = await started(
    ['run', '--quiet', '--', 'sh', '-c', 'echo "$HTTPS_PROXY"; test -r "$SSL_CERT_FILE"; exit 3'],
    {
      env: { ...env, SALLYPORT_SECRET: 's3cret' },
    },
  );
  t.is(ran.code, 3, ran.stderr);
  t.regex(ran.stdout, /^http:\/\/[^:]+:[^@]+@127\.0\.0\.1:\d+\n$/);
  const broken = join(gateway.home, 'policies', 'default.yaml');
  writeFileSync(broken, 'version: 1\nname: default\nrulez: []\n');
  const refused = await started(['reload'], { env });
  t.is(refused.code, 1);
  t.true(refused.stdout.includes('did you mean') || refused.stdout.includes('POLICY_UNKNOWN_KEY'), refused.stdout);
  gateway.child.kill('SIGHUP');
  await gateway.waitFor('reload refused');
  const second = await started(['gateway', '--listen', '127.0.0.1:0'], { env });
  t.is(second.code, 2);
  t.true(second.stderr.includes('GATEWAY_AUDIT_LOCKED'), second.stderr);
  t.is(await gateway.stop('SIGTERM'), 0);
  t.false(existsSync(join(gateway.home, 'run', 'control.sock')));
  const verified = await started(['audit', 'verify'], { env });
  t.is(verified.code, 0, verified.stdout);
  const tail = await started(['audit', 'tail', '--json', '-n', '100', '--kind', 'sandbox.attach'], { env });
  t.is(tail.stdout.trim().split('\n').length, 1);
});

test('up says how to use it and stops at SIGINT', async (t) => {
  const gateway = await gatewayProcess(t, ['up']);
  await gateway.waitFor('Ctrl-C stops it');
  t.regex(gateway.log(), /curl --proxy http:\/\/[^ ]+ --cacert [^ ]+ https:\/\//);
  const second = await started(['up', '--listen', '127.0.0.1:0', '--home', gateway.home]);
  t.is(second.code, 2);
  t.true(second.stderr.includes('a gateway of this home is running already'), second.stderr);
  t.is(await gateway.stop('SIGINT'), 0);
});

test('gateway does not open its inspector at SIGUSR1', async (t) => {
  const gateway = await gatewayProcess(t);
  gateway.child.kill('SIGUSR1');
  gateway.child.kill('SIGHUP');
  await gateway.waitFor('reload: generation');
  t.false(gateway.log().includes('Debugger'));
  t.is(await gateway.stop('SIGTERM'), 0);
});

const debugged: [string, string[], Record<string, string>][] = [
  ['--inspect', ['--inspect=127.0.0.1:0'], {}],
  ['--heapsnapshot-signal', ['--heapsnapshot-signal=SIGUSR2'], {}],
  ['NODE_OPTIONS', [], { NODE_OPTIONS: '--inspect=127.0.0.1:0' }],
  ['TLS verification off', [], { NODE_TLS_REJECT_UNAUTHORIZED: '0' }],
];
for (const [name, nodeArgs, env] of debugged) {
  for (const command of ['gateway', 'up', 'run']) {
    test(`${command} refuses to start with ${name} before it makes anything`, async (t) => {
      const home = join(temporaryFolder(t), 'h');
      const rest = command === 'run' ? ['--', 'true'] : [];
      const outcome = await started([command, '--home', home, ...rest], { nodeArgs, env });
      t.is(outcome.code, 2);
      t.true(outcome.stderr.includes('Cannot start: '), outcome.stderr);
      t.false(existsSync(home));
    });
  }
}

test('run without a gateway starts one of its own, twice at the same time, and judges by a file', async (t) => {
  const folder = temporaryFolder(t);
  const home = join(folder, 'h');
  const env = { SALLYPORT_HOME: home, TMPDIR: folder };
  t.is((await started(['vault', 'init'], { env })).code, 0);
  const file = join(folder, 'agent.yaml');
  writeFileSync(
    file,
    'version: 1\nname: agent\nrules: [{ name: r, effect: allow, hosts: [a.example.com] }]\n' +
      'credentials: [{ name: key, secret: "env:API_KEY", bind: { hosts: [a.example.com] }, inject: { header: x-key, format: "{secret}" } }]\n',
  );
  const script =
    'test -r "$SSL_CERT_FILE" && echo "key=$API_KEY stand-in=$SALLYPORT_PLACEHOLDER_KEY home=$SALLYPORT_HOME"';
  const [one, two] = await Promise.all(
    [1, 2].map(() =>
      started(['run', '--policy', file, '--', 'sh', '-c', script], { env: { ...env, API_KEY: 's3cret-value' } }),
    ),
  );
  for (const outcome of [one, two]) {
    t.is(outcome?.code, 0, outcome?.stderr);
    t.regex(outcome?.stdout ?? '', /^key= stand-in=\S+ home=\n$/);
  }
  t.deepEqual(readdirSync(folder).sort(), ['agent.yaml', 'h']);
  for (const dir of readdirSync(home).filter((name) => name.startsWith('audit'))) {
    const files = readdirSync(join(home, dir)).filter((name) => name.endsWith('.jsonl'));
    const verified = await started(['audit', 'verify', ...files.map((name) => join(home, dir, name))]);
    t.is(verified.code, 0, verified.stdout);
  }
});

test('run forwards SIGTERM and passes on what the command makes of it', async (t) => {
  const gateway = await gatewayProcess(t);
  let pid = 0;
  const running = started(
    ['run', '--quiet', '--', 'sh', '-c', 'trap "exit 42" TERM; echo ready >"$READY"; while :; do sleep 0.05; done'],
    {
      env: { SALLYPORT_HOME: gateway.home, READY: join(gateway.home, 'ready') },
      onStart: (started) => {
        pid = started;
      },
    },
  );
  await appeared(gateway.home, 'ready');
  process.kill(pid, 'SIGTERM');
  t.is((await running).code, 42);
  await gateway.stop('SIGTERM');
});

/** Below `home`, it included: what anybody but its owner may read, write or enter. */
function openToOthers(home: string): readonly string[] {
  const found = ['', ...readdirSync(home, { recursive: true, encoding: 'utf8' })];
  return found.filter((name) => (statSync(join(home, name)).mode & 0o077) !== 0);
}

/** Resolves once the folder holds the file. */
function appeared(folder: string, name: string): Promise<void> {
  return new Promise((resolve) => {
    const watcher = watch(folder);
    const look = (): void => {
      if (!existsSync(join(folder, name))) return;
      watcher.close();
      resolve();
    };
    watcher.on('change', look);
    look();
  });
}
