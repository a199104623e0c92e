/** A whole gateway in the test's own process: temporary home, free port, names pinned to upstreams of the test. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import {
  type Gateway,
  type GatewayConfig,
  type GatewayOptions,
  type ReloadReport,
  startGateway,
} from '../../gateway/index.ts';
import { createKeyFile, Vault } from '../../vault/index.ts';
import { AuditReader } from './audit-reader.ts';
import { connectRaw, proxyAuthorization, type RawConnection } from './raw-client.ts';
import { scratchDirectory } from './scratch.ts';
import { defaultDeadlineMs } from './upstream.ts';

export { type AuditLine, AuditReader } from './audit-reader.ts';

export interface PinSetup {
  readonly name: string;
  readonly port: number;
  /** PEM of the only authority trusted for it; absent = the usual ones. */
  readonly ca?: string;
}

export interface GatewaySetup extends Partial<Pick<GatewayOptions, 'limits' | 'resolve' | 'wireMode'>> {
  /** One policy document. */
  readonly policy: string;
  /** Secrets for `env:` references, set in this process until `close`. */
  readonly env?: Readonly<Record<string, string>>;
  /** Secrets for `vault:` references. */
  readonly secrets?: Readonly<Record<string, string>>;
  readonly upstreams?: readonly PinSetup[];
  /** Names pinned to the gateway's own listener. */
  readonly pinToSelf?: readonly string[];
  /** Loopback port of a parent proxy. */
  readonly parentProxy?: number;
  /** PEM of a further trusted authority. */
  readonly extraCa?: string;
  readonly audit?: Partial<GatewayConfig['audit']>;
}

/** One caller with everything a client needs. */
export interface TestCaller {
  readonly id: string;
  readonly token: string;
  /** `Proxy-Authorization: …` with CRLF. */
  readonly authorization: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly socketPath: string | null;
}

export interface TestGateway {
  readonly gateway: Gateway;
  readonly port: number;
  readonly home: string;
  readonly auditDir: string;
  /** PEM of the interception CA alone. */
  readonly ca: string;
  /** The first caller, under the setup's policy. */
  readonly caller: TestCaller;
  readonly authorization: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly audit: AuditReader;
  /** Lines of the gateway's own log. */
  readonly log: readonly string[];
  connect(): Promise<RawConnection>;
  attach(policy?: string, labels?: Readonly<Record<string, string>>): Promise<TestCaller>;
  /** Replaces the policy file and reloads. */
  reload(policy: string): Promise<ReloadReport>;
  /** Twice is safe. */
  close(): Promise<void>;
}

/** For a test file that runs the tests of other files once more, with sockets read the other way. */
export const setupDefaults: { wireMode: NonNullable<GatewayOptions['wireMode']> } = { wireMode: 'direct' };

/** Starts a gateway. What it opened is gone after `close`, or after a failed start. */
export async function startTestGateway(setup: GatewaySetup): Promise<TestGateway> {
  const home = await scratchDirectory();
  const log: string[] = [];
  const self = { port: 0 };
  try {
    const config = await writeHome(home.path, setup, self);
    Object.assign(process.env, setup.env);
    const { limits, resolve, wireMode = setupDefaults.wireMode } = setup;
    const gateway = await startGateway(config, {
      ...(limits === undefined ? {} : { limits }),
      ...(resolve === undefined ? {} : { resolve }),
      wireMode,
      writeLog: (line) => log.push(line),
    });
    self.port = gateway.proxyAddresses[0]?.port ?? 0;
    return await assemble({ gateway, config, setup, log, remove: home.remove });
  } catch (error) {
    await home.remove();
    throw error;
  }
}

/** As {@link startTestGateway}, for the length of one test. */
export async function withGateway(t: ExecutionContext, setup: GatewaySetup): Promise<TestGateway> {
  const gateway = await startTestGateway(setup);
  t.teardown(() => gateway.close());
  return gateway;
}

/** Waits until something that is about to happen has happened. */
export async function eventually(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + defaultDeadlineMs;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`not within ${defaultDeadlineMs} ms: ${what}`);
    await pause(5);
  }
}

/** Writes key, vault, policy and authorities below `home` and gives the configuration that uses them. */
export async function writeHome(home: string, setup: GatewaySetup, self: { port: number }): Promise<GatewayConfig> {
  const policies = join(home, 'policies');
  await mkdir(policies);
  await writeFile(join(policies, 'policy.yaml'), setup.policy);
  const key = { kind: 'file', path: join(home, 'vault.key') } as const;
  await createKeyFile(key.path);
  const vault = await Vault.create({ file: join(home, 'vault.sealed'), key });
  for (const [name, value] of Object.entries(setup.secrets ?? {})) await vault.set(name, Buffer.from(value));
  vault.close();
  const extraCa = setup.extraCa === undefined ? null : join(home, 'extra-ca.pem');
  if (extraCa !== null) await writeFile(extraCa, setup.extraCa ?? '');
  const pins = await Promise.all((setup.upstreams ?? []).map((pin, nth) => pinOf(home, pin, nth)));
  const own = (setup.pinToSelf ?? []).map((name) => ({
    name,
    address: '127.0.0.1',
    // Known only once the gateway listens.
    get port() {
      return self.port;
    },
    ca: null,
  }));
  return {
    home,
    proxy: { listen: [{ host: '127.0.0.1', port: 0 }] },
    api: { listen: null, socket: join(home, 'control.sock') },
    policies: { dir: policies, default: policyName(setup.policy) },
    vault: { file: join(home, 'vault.sealed'), key },
    audit: {
      dir: join(home, 'audit'),
      fsync: 'never',
      checkpointEveryMs: 60_000,
      rotateBytes: 64 * 1024 * 1024,
      maxQueued: 10_000,
      ...setup.audit,
    },
    upstreams: [...pins, ...own],
    egress: {
      parentProxy: setup.parentProxy === undefined ? null : { host: '127.0.0.1', port: setup.parentProxy },
      extraCa,
      resolver: [],
    },
    callers: [],
  };
}

/** The name a policy document gives itself. */
export function policyName(policy: string): string {
  return /^name: *([a-z0-9-]+)/m.exec(policy)?.[1] ?? 'default';
}

interface Assembly {
  readonly gateway: Gateway;
  readonly config: GatewayConfig;
  readonly setup: GatewaySetup;
  readonly log: readonly string[];
  readonly remove: () => Promise<void>;
}

async function assemble({ gateway, config, setup, log, remove }: Assembly): Promise<TestGateway> {
  const port = gateway.proxyAddresses[0]?.port ?? 0;
  const attach = async (policy = config.policies.default, labels = {}): Promise<TestCaller & { bundle: string }> => {
    const { id, token, environment, socketPath, caBundlePath } = await gateway.attach({
      policy,
      labels,
      actor: 'test',
    });
    return { id, token, environment, socketPath, authorization: proxyAuthorization(id, token), bundle: caBundlePath };
  };
  const caller = await attach();
  return {
    gateway,
    port,
    home: config.home,
    auditDir: config.audit.dir,
    ca: lastCertificate(await readFile(caller.bundle, 'utf8')),
    caller,
    authorization: caller.authorization,
    environment: caller.environment,
    audit: new AuditReader(config.audit.dir),
    log,
    connect: () => connectRaw({ port }),
    attach,
    reload: async (policy) => {
      await writeFile(join(config.policies.dir, 'policy.yaml'), policy);
      return gateway.reload('test');
    },
    close: async () => {
      await gateway.close();
      for (const name of Object.keys(setup.env ?? {})) delete process.env[name];
      await remove();
    },
  };
}

/** The bundle ends with the gateway's own authority. */
function lastCertificate(bundle: string): string {
  return bundle.slice(bundle.lastIndexOf('-----BEGIN CERTIFICATE-----'));
}

async function pinOf(home: string, pin: PinSetup, nth: number): Promise<GatewayConfig['upstreams'][number]> {
  const ca = pin.ca === undefined ? null : join(home, `upstream-${nth}.pem`);
  if (ca !== null) await writeFile(ca, pin.ca ?? '');
  return { name: pin.name, address: '127.0.0.1', port: pin.port, ca };
}
