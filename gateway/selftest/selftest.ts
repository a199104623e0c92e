/** The boundary self-test: canaries through the real listener, policy code and vault path. One that gets through closes the gate. */
import { randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadPolicy } from '../../policy/index.ts';
import type { SelftestCheck, SelftestReport } from '../api/types.ts';
import type { Caller, EgressContext } from '../egress/index.ts';
import { createCaller, SELFTEST_CALLER } from '../egress/index.ts';
import { GatewayError } from '../errors.ts';
import type { ListenAddress } from '../types.ts';
import { canaryCall } from './canary-client.ts';
import type { CanaryUpstream, Seen } from './canary-upstream.ts';
import { startCanaryUpstream } from './canary-upstream.ts';

const ALLOWED = 'allowed.selftest.invalid';
const OTHER = 'other.selftest.invalid';
const SECRET_VARIABLE = 'SALLYPORT_SELFTEST_SECRET';

const POLICY = `
version: 1
name: sallyport-selftest
rules:
  - { name: allowed, effect: allow, hosts: [${ALLOWED}], methods: [GET], paths: ["/open", "/token"] }
  - { name: other, effect: allow, hosts: [${OTHER}], methods: [GET], paths: ["/open"] }
credentials:
  - name: canary
    secret: env:${SECRET_VARIABLE}
    bind: { hosts: [${ALLOWED}], methods: [GET], paths: ["/token"] }
    inject: { header: Authorization, format: "Bearer {secret}" }
`;

export class SelfTest {
  /** The canary's secret, for the resolver alone. */
  readonly environment: Readonly<Record<string, string>>;
  readonly #secret: string;
  readonly #upstream: CanaryUpstream;
  readonly #caFile: string;

  private constructor(upstream: CanaryUpstream, caFile: string) {
    this.#upstream = upstream;
    this.#caFile = caFile;
    this.#secret = randomBytes(24).toString('hex');
    this.environment = { [SECRET_VARIABLE]: this.#secret };
  }

  /** Starts the canary server; `runDir` gets the file with its authority. */
  static async create(runDir: string): Promise<SelfTest> {
    const upstream = await startCanaryUpstream([ALLOWED, OTHER]);
    const caFile = join(runDir, 'selftest-ca.pem');
    writeFileSync(caFile, upstream.caPem, { mode: 0o600 });
    return new SelfTest(upstream, caFile);
  }

  /** A check that could not run has failed. */
  async run(context: EgressContext, proxy: ListenAddress): Promise<SelftestReport> {
    const token = randomBytes(24).toString('hex');
    const caller = this.#caller(token);
    context.callers.remove(SELFTEST_CALLER);
    context.callers.add(caller);
    try {
      const checks: SelftestCheck[] = [];
      for (const check of this.#checks(context, proxy, token)) checks.push(await runCheck(check, this.#secret));
      return { ok: checks.every((check) => check.ok), checks };
    } finally {
      context.callers.remove(SELFTEST_CALLER);
    }
  }

  async close(): Promise<void> {
    rmSync(this.#caFile, { force: true });
    await this.#upstream.close();
  }

  #caller(token: string): Caller {
    const result = loadPolicy(POLICY, { file: 'self-test' });
    if (!result.ok) {
      throw new GatewayError('GATEWAY_SELFTEST_FAILED', 'Cannot run the self-test: its own policy does not load');
    }
    const info = { name: result.policy.name, digest: result.policy.digest, generation: 0 };
    const pin = { address: '127.0.0.1', port: this.#upstream.port, ca: this.#caFile };
    return createCaller({
      id: SELFTEST_CALLER,
      policy: { name: info.name, current: { compiled: result.policy, info } },
      token,
      pins: new Map([ALLOWED, OTHER].map((name) => [name, { name, ...pin }])),
      isSelfTest: true,
    });
  }

  #checks(context: EgressContext, proxy: ListenAddress, token: string): Check[] {
    const identity = `Proxy-Authorization: Basic ${Buffer.from(`${SELFTEST_CALLER}:${token}`).toString('base64')}\r\n`;
    const caPem = context.ca.certPem;
    const call = (canary: Canary) => async () => {
      this.#upstream.takeSeen();
      const {
        method = 'GET',
        path = '/open',
        host = ALLOWED,
        authority = `${ALLOWED}:443`,
        serverName = ALLOWED,
      } = canary;
      const request = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
      const answer = await canaryCall({
        proxy,
        identity: canary.identity ?? identity,
        authority,
        serverName,
        caPem,
        request,
      });
      return { answer, seen: this.#upstream.takeSeen() };
    };
    const isInjected = ({ answer, seen }: CheckResult) =>
      seen[0]?.authorization === `Bearer ${this.#secret}` && !answer.includes(this.#secret);
    return [
      { name: 'an allowed request passes', expected: '200', run: call({}), holds: passed, leaks: never },
      {
        name: 'a credential reaches the upstream and not the client',
        expected: '200, token seen upstream only',
        run: call({ path: '/token' }),
        holds: (result) => passed(result) && isInjected(result),
        leaks: never,
      },
      {
        name: 'no credential leaves where it is not bound',
        expected: '200, no token',
        run: call({}),
        holds: (result) => passed(result) && result.seen[0]?.authorization === '',
        leaks: ({ seen }) => seen.some(({ authorization }) => authorization !== ''),
      },
      {
        name: 'a caller without identity is refused',
        expected: '407',
        run: call({ identity: '' }),
        holds: refused(407),
      },
      {
        name: 'a path no rule allows is refused',
        expected: '403',
        run: call({ path: '/closed' }),
        holds: refused(403),
      },
      {
        name: 'a method no rule allows is refused',
        expected: '403',
        run: call({ method: 'DELETE' }),
        holds: refused(403),
      },
      {
        name: 'a name no rule allows is refused',
        expected: '403',
        run: call({ authority: 'closed.selftest.invalid:443' }),
        holds: refused(403),
      },
      {
        name: 'a metadata address is refused',
        expected: '403',
        run: call({ authority: '169.254.169.254:80' }),
        holds: refused(403),
      },
      {
        name: 'loopback is refused',
        expected: '403',
        run: call({ authority: `127.0.0.1:${this.#upstream.port}` }),
        holds: refused(403),
      },
      {
        name: 'a TLS name that is not the CONNECT name is cut',
        expected: 'closed',
        run: call({ serverName: OTHER }),
        holds: cut,
      },
      {
        name: 'a Host that is not the CONNECT name is refused',
        expected: '421',
        run: call({ host: OTHER }),
        holds: refused(421),
      },
    ];
  }
}

/** What differs from an allowed request. */
interface Canary {
  readonly authority?: string;
  readonly serverName?: string;
  readonly host?: string;
  readonly path?: string;
  readonly method?: string;
  readonly identity?: string;
}

interface CheckResult {
  readonly answer: string;
  readonly seen: readonly Seen[];
}

interface Check {
  readonly name: string;
  readonly expected: string;
  readonly run: () => Promise<CheckResult>;
  readonly holds: (result: CheckResult) => boolean;
  /** What must never be, apart from the secret coming back; default: anything reached the upstream. */
  readonly leaks?: (result: CheckResult) => boolean;
}

function reached({ seen }: CheckResult): boolean {
  return seen.length > 0;
}

function never(): boolean {
  return false;
}

function passed({ answer, seen }: CheckResult): boolean {
  return seen.length === 1 && answer.startsWith('HTTP/1.1 200 ');
}

function refused(status: number): (result: CheckResult) => boolean {
  return ({ answer, seen }) => seen.length === 0 && answer.startsWith(`HTTP/1.1 ${status} `);
}

function cut({ answer, seen }: CheckResult): boolean {
  return seen.length === 0 && answer === 'closed';
}

async function runCheck(
  { name, expected, run, holds, leaks = reached }: Check,
  secret: string,
): Promise<SelftestCheck> {
  try {
    const result = await run();
    const ok = holds(result);
    const { answer, seen } = result;
    const leaked = !ok && (answer.includes(secret) || leaks({ answer, seen }));
    return { name, expected, ok, leaked, got: `${statusOf(answer)}, ${seen.length} seen upstream` };
  } catch (error) {
    return { name, expected, ok: false, leaked: false, got: error instanceof Error ? error.message : 'failed' };
  }
}

function statusOf(answer: string): string {
  return answer.startsWith('HTTP/1.1 ') ? answer.slice(9, 12) : answer.slice(0, 40);
}
