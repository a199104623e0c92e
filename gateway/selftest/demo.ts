/** The demonstration of `up --check`: real requests through a real gateway to a server of its own, each compared with what must happen. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Vault } from '../../vault/index.ts';
import type { KeySource } from '../../vault/types.ts';
import type { Gateway } from '../api/types.ts';
import { verifyAudit } from '../audit/index.ts';
import type { GatewayConfig } from '../types.ts';
import { type DemoClient, type DemoOutcome, getAbsolute, getThroughTunnel } from './demo-client.ts';
import { demoHost, demoOtherHost, demoPolicy, demoSecret } from './demo-policy.ts';
import { type EchoUpstream, startEchoUpstream } from './echo-upstream.ts';

export interface DemoStep {
  readonly name: string;
  readonly ok: boolean;
  /** What was sent, what came back, what was looked at: a few lines for people. */
  readonly lines: readonly string[];
}

export interface Demonstration {
  /** The configuration to start the gateway with: the demonstration's server is pinned in it. */
  readonly config: GatewayConfig;
  /** Runs the requests, each step told as it ends. */
  run(gateway: Gateway, onStep: (step: DemoStep) => void): Promise<boolean>;
  /** After the gateway has closed: is the log whole, and free of the token? */
  audit(onStep: (step: DemoStep) => void): Promise<boolean>;
  /** May be called twice. */
  close(): Promise<void>;
}

/** Puts policy, secret and server in place. `config` is of a home made for this alone; `key` opens its vault. */
export async function prepareDemonstration(config: GatewayConfig, key: KeySource): Promise<Demonstration> {
  const upstream = await startEchoUpstream(demoHost);
  try {
    const token = `demo-${randomBytes(24).toString('hex')}`;
    await storeToken(config, key, token);
    mkdirSync(config.policies.dir, { recursive: true, mode: 0o700 });
    writeFileSync(join(config.policies.dir, 'demo.yaml'), demoPolicy);
    const ca = join(config.home, 'demo-upstream-ca.pem');
    writeFileSync(ca, upstream.caPem);
    const pin = { name: demoHost, address: '127.0.0.1', port: upstream.port, ca };
    return {
      config: { ...config, upstreams: [...config.upstreams, pin] },
      run: (gateway, onStep) => runSteps({ gateway, upstream, token }, onStep),
      audit: (onStep) => tell([() => auditStep(config, token)], onStep),
      close: () => upstream.close(),
    };
  } catch (error) {
    await upstream.close();
    throw error;
  }
}

interface Stage {
  readonly gateway: Gateway;
  readonly upstream: EchoUpstream;
  readonly token: string;
}

type Step = () => Promise<DemoStep>;

async function runSteps(stage: Stage, onStep: (step: DemoStep) => void): Promise<boolean> {
  const attached = await stage.gateway.attach({ policy: 'demo', labels: { via: 'up-check' }, actor: 'demonstration' });
  const client = { proxyUrl: attached.proxyUrl, ca: readFileSync(attached.caBundlePath, 'utf8') };
  try {
    return await tell(
      [
        () => allowedStep(stage, client),
        () => credentialStep(stage, client),
        () => refusedStep(stage, client),
        () => metadataStep(client),
        () => wrongNameStep(stage, client),
      ],
      onStep,
    );
  } finally {
    await stage.gateway.detach(attached.id, 'demonstration');
  }
}

async function tell(steps: readonly Step[], onStep: (step: DemoStep) => void): Promise<boolean> {
  let isOk = true;
  for (const step of steps) {
    const told = await step();
    onStep(told);
    isOk &&= told.ok;
  }
  return isOk;
}

async function allowedStep({ upstream }: Stage, client: DemoClient): Promise<DemoStep> {
  const outcome = await getThroughTunnel(client, { host: demoHost, path: '/public/hello' });
  const seen = upstream.seen.at(-1);
  const ok = statusOf(outcome) === 200 && seen?.path === '/public/hello' && seen.headers.authorization === undefined;
  return {
    name: 'allowed, without a credential',
    ok,
    lines: [
      `> GET https://${demoHost}/public/hello`,
      ...answerLines(outcome),
      'the server saw no Authorization header',
    ],
  };
}

async function credentialStep({ upstream, token }: Stage, client: DemoClient): Promise<DemoStep> {
  const outcome = await getThroughTunnel(client, { host: demoHost, path: '/account/me' });
  const seen = upstream.seen.at(-1);
  const wasInjected = seen?.path === '/account/me' && seen.headers.authorization === `Bearer ${token}`;
  const isHidden = 'answer' in outcome && !outcome.answer.body.includes(token);
  return {
    name: 'allowed, with a token the caller never had',
    ok: statusOf(outcome) === 200 && wasInjected && isHidden,
    lines: [
      `> GET https://${demoHost}/account/me        (sent without Authorization)`,
      ...(isHidden ? answerLines(outcome) : ['< an answer that holds the token, not shown']),
      `the server ${wasInjected ? 'saw' : 'DID NOT SEE'} Authorization: Bearer ${token.slice(0, 9)}… and echoed it;`,
      `the caller ${isHidden ? 'got no token' : 'GOT THE TOKEN'}`,
    ],
  };
}

async function refusedStep({ upstream }: Stage, client: DemoClient): Promise<DemoStep> {
  const before = upstream.seen.length;
  const outcome = await getThroughTunnel(client, { host: demoHost, path: '/admin/users' });
  return {
    name: 'refused by path, with a reason',
    ok: isRefusal(outcome, { status: 403, code: 'policy_denied' }) && upstream.seen.length === before,
    lines: [`> GET https://${demoHost}/admin/users`, ...answerLines(outcome), reached(upstream, before)],
  };
}

async function metadataStep(client: DemoClient): Promise<DemoStep> {
  const url = 'http://169.254.169.254/latest/meta-data/';
  const outcome = await getAbsolute(client, url);
  return {
    name: 'refused: the address of a cloud metadata service',
    ok: isRefusal(outcome, { status: 403, code: 'never_list' }),
    lines: [`> GET ${url}`, ...answerLines(outcome)],
  };
}

async function wrongNameStep({ upstream }: Stage, client: DemoClient): Promise<DemoStep> {
  const before = upstream.seen.length;
  const outcome = await getThroughTunnel(client, { host: demoHost, path: '/public/hello', sni: demoOtherHost });
  return {
    name: 'refused: CONNECT names one host, the TLS handshake another',
    ok: 'ended' in outcome && upstream.seen.length === before,
    lines: [
      `> CONNECT ${demoHost}:443, then TLS for ${demoOtherHost}`,
      ...answerLines(outcome),
      reached(upstream, before),
    ],
  };
}

async function auditStep(config: GatewayConfig, token: string): Promise<DemoStep> {
  const { dir } = config.audit;
  const report = await verifyAudit({ source: { dir } });
  const files = readdirSync(dir).filter((name) => name.endsWith('.jsonl'));
  const text = files.map((name) => readFileSync(join(dir, name), 'latin1')).join('');
  const isClean = !text.includes(token);
  const requests = text.split('\n').filter((line) => line.includes('"kind":"http.request"')).length;
  return {
    name: 'the audit log verifies',
    ok: report.ok && isClean && requests >= MIN_REQUEST_RECORDS && report.unsignedTail === 0,
    lines: [
      `${report.records} records, ${requests} of them requests; hash chain ${report.ok ? 'whole' : 'BROKEN'}`,
      `signed up to record ${report.signedUpTo ?? 'none'}, ${report.unsignedTail} behind; ${isClean ? 'no secret in it' : 'IT HOLDS THE TOKEN'}`,
    ],
  };
}

// Allowed, with credential, by path, metadata: each leaves a record; the wrong name leaves one of another kind.
const MIN_REQUEST_RECORDS = 4;
const MAX_SHOWN_BODY = 400;

async function storeToken(config: GatewayConfig, key: KeySource, token: string): Promise<void> {
  const vault = await Vault.open({ file: config.vault.file, key });
  try {
    await vault.set(demoSecret, Buffer.from(token), 'demonstration');
  } finally {
    vault.close();
  }
}

function statusOf(outcome: DemoOutcome): number | null {
  return 'answer' in outcome ? outcome.answer.status : null;
}

/** The status, and the body of POLICY: a code, and the id that finds the record. */
function isRefusal(outcome: DemoOutcome, expected: { status: number; code: string }): boolean {
  if (!('answer' in outcome) || outcome.answer.status !== expected.status) return false;
  try {
    const parsed: unknown = JSON.parse(outcome.answer.body);
    // Compared field by field; a body of any other shape is simply not the refusal.
    const { error } = parsed as { error?: { code?: unknown; requestId?: unknown } };
    return error?.code === expected.code && error.requestId === outcome.answer.requestId;
  } catch {
    return false;
  }
}

function answerLines(outcome: DemoOutcome): string[] {
  if ('ended' in outcome) return [`< connection closed (${outcome.ended})`];
  const { status, body } = outcome.answer;
  return [`< ${status} ${body.trim().slice(0, MAX_SHOWN_BODY)}`];
}

function reached(upstream: EchoUpstream, before: number): string {
  return upstream.seen.length === before ? 'nothing reached the server' : 'THE SERVER WAS REACHED';
}
