/** Ours: the real gateway as a child process, with a policy of the same rules, injection and its audit log. */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Daemon, freePort, startDaemon } from '../daemon.ts';
import { MEASURED, RULES, SECRET, SHAPES, type Shape, UNLISTED_HOST } from '../workload.ts';
import { missing, type Peer, type PeerContext, type RunningPeer } from './peer.ts';

/** The built CLI, seen from dist/test/bench/peers/. */
const CLI = fileURLToPath(new URL('../../../gateway/cli/main.js', import.meta.url));
const CALLER = 'bench';
const POLICY = 'bench';
/** Loading 3,000 rules and the self-test on a busy machine. */
const READY_TIMEOUT_MS = 30_000;
const POLL_MS = 50;
const SECRET_VARIABLE = 'SALLYPORT_BENCH_SECRET';

export const sallyport: Peer = {
  name: 'sallyport',
  title: 'the gateway',
  packages: [],
  available: () => missing({ 'dist/gateway/cli/main.js': existsSync(CLI) }, []),
  start: startSallyport,
};

async function startSallyport(dir: string, context: PeerContext): Promise<RunningPeer> {
  const [port, apiPort] = [await freePort(), await freePort()];
  const token = randomBytes(24).toString('hex');
  const config = join(dir, 'sallyport.yaml');
  mkdirSync(join(dir, 'policies'));
  writeFileSync(join(dir, 'token'), token, { mode: 0o600 });
  // JSON is YAML, and needs no writer of ours.
  writeFileSync(join(dir, 'policies', `${POLICY}.yaml`), JSON.stringify(policy()));
  writeFileSync(config, JSON.stringify(configuration(port, apiPort, context), null, 1));
  const env = { SALLYPORT_HOME: dir, [SECRET_VARIABLE]: SECRET };
  const run = (...args: readonly string[]) => runCli(context.nodePath, [...args, '--config', config], env);
  run('vault', 'init');
  const daemon = await startDaemon(context.nodePath, [CLI, 'gateway', '--config', config], {
    cpu: context.cpu,
    port: apiPort,
    env,
    undo: context.undo,
  });
  await untilReady(apiPort, daemon);
  const caPem = run('ca', 'export');
  const proxyAuthorization = `Basic ${Buffer.from(`${CALLER}:${token}`).toString('base64')}`;
  const access = { kind: 'connect', port, hostPort: 443, caPem, proxyAuthorization } as const;
  return { access, ...daemon };
}

function configuration(port: number, apiPort: number, context: PeerContext) {
  const ca = context.pki.originCa.cert;
  // The unlisted host is pinned as well, so that only the policy can be what refuses it.
  const names = [...MEASURED.map((rule) => rule.host), UNLISTED_HOST];
  return {
    proxy: { listen: [`127.0.0.1:${port}`] },
    api: { listen: `127.0.0.1:${apiPort}` },
    policies: { dir: 'policies', default: POLICY },
    audit: { dir: 'audit', fsync: 'interval' },
    upstreams: names.map((name) => ({ name, address: '127.0.0.1', port: context.originPort, ca })),
    callers: [{ id: CALLER, policy: POLICY, token: 'file:token' }],
  };
}

/** One rule a host, one credential for each shape of rule, so that every allowed host gets one, as in the other targets. */
function policy() {
  return {
    version: 1,
    name: POLICY,
    rules: RULES.map(({ name, host, shape }) => ({ name, effect: 'allow', hosts: [host], ...judged(shape) })),
    credentials: SHAPES.map((shape) => ({
      name: `token-${shape.id}`,
      secret: `env:${SECRET_VARIABLE}`,
      bind: { hosts: RULES.filter((rule) => rule.shape === shape).map((rule) => rule.host), ...judged(shape) },
      inject: { header: 'Authorization', format: 'Bearer {secret}' },
      onClientCredential: 'replace',
    })),
  };
}

/** GET implies HEAD in a policy. */
function judged(shape: Shape) {
  return { methods: shape.methods.filter((method) => method !== 'HEAD'), paths: [`${shape.prefix}**`] };
}

/** The proxy listens before the boundary self-test has passed and refuses until then. */
async function untilReady(apiPort: number, daemon: Daemon): Promise<void> {
  for (const end = Date.now() + READY_TIMEOUT_MS; Date.now() < end; await delay(POLL_MS)) {
    const answer = await fetch(`http://127.0.0.1:${apiPort}/readyz`, { signal: AbortSignal.timeout(READY_TIMEOUT_MS) });
    await answer.arrayBuffer();
    if (answer.ok) return;
  }
  throw new Error(`Cannot start the gateway: it is not ready: ${daemon.said().trim()}`);
}

function runCli(nodePath: string, args: readonly string[], env: Readonly<Record<string, string>>): string {
  const done = spawnSync(nodePath, [CLI, ...args], { encoding: 'utf8', env: { ...process.env, ...env } });
  if (done.status !== 0) throw new Error(`Cannot run sallyport ${args.slice(0, 2).join(' ')}: ${done.stderr.trim()}`);
  return done.stdout;
}
