/** One running gateway: what starts, in which order, and how it ends. */
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { KeySource, ManagedCredentialSource, Placeholders, SecretInfo, SecretRedactor } from '../vault/index.ts';
import {
  createCredentialSource,
  createPlaceholders,
  createRedactor,
  createResolver,
  InterceptionCa,
  Vault,
} from '../vault/index.ts';
import type {
  AttachedSandbox,
  AttachOptions,
  Gateway,
  GatewayStatus,
  ReloadReport,
  SelftestReport,
} from './api/types.ts';
import { AuditLog, createAuditSigner, createUlid } from './audit/index.ts';
import type { EgressContext, EgressLimits, Resolve, WireMode } from './egress/index.ts';
import {
  Callers,
  createCaller,
  createDnsResolver,
  createStats,
  Dialer,
  defaultLimits,
  EgressServer,
  hostPort,
  UpstreamPool,
} from './egress/index.ts';
import { GatewayError } from './errors.ts';
import type { Log } from './log.ts';
import { createLog, errorFields } from './log.ts';
import { createMetrics } from './metrics.ts';
import { auditKey, placeholderKey } from './own-keys.ts';
import { Policies } from './policies.ts';
import { caBundle, sandboxEnvironment } from './sandbox-environment.ts';
import { SelfTest } from './selftest/selftest.ts';
import type { CallerConfig, GatewayConfig, ListenAddress } from './types.ts';
import { vaultChanges } from './vault-changes.ts';

/** Seams for tests and for `run`; a user has the configuration file. */
export interface GatewayOptions {
  /** Opens the vault when the configuration asks for a prompt. */
  readonly key?: KeySource;
  readonly limits?: Partial<EgressLimits>;
  readonly resolve?: Resolve;
  readonly wireMode?: WireMode;
  /** Folder of its sockets and CA bundle; default `run` in the home. Two gateways of one home need two. */
  readonly runDir?: string;
  /** Lines of the gateway's own log; default stderr. */
  readonly writeLog?: (line: string) => void;
}

/** A failed self-test is repeated after this long. */
const SELFTEST_RETRY_MS = 15_000;

/** Bytes of a sandbox's proxy password: 256 bits, so a fast hash is enough to keep it. */
const TOKEN_BYTES = 32;

/** One read of all direct upstream connections: bytes are used or copied before the next read. */
const SHARED_READ_BYTES = 64 * 1024;

/**
 * Opens vault, audit log and policies, proves the boundary, and serves.
 * @throws GatewayError, VaultError: what could not be opened, before anything listens
 */
export async function startGateway(config: GatewayConfig, options: GatewayOptions = {}): Promise<Gateway> {
  const gateway = new RunningGateway(config, options);
  try {
    await gateway.start();
    return gateway;
  } catch (error) {
    await gateway.close();
    throw error;
  }
}

class RunningGateway implements Gateway {
  readonly #config: GatewayConfig;
  readonly #options: GatewayOptions;
  readonly #startedAt = new Date().toISOString();
  readonly #stats = createStats();
  readonly #callers = new Callers();
  readonly #redactor: SecretRedactor = createRedactor();
  readonly #log: Log;
  readonly #policies: Policies;
  readonly #proxyAddresses: ListenAddress[] = [];
  readonly #undo: (() => void | Promise<void>)[] = [];
  #refusing: string | null = 'the self-test has not passed yet';
  #isStopping = false;
  #coarseNow = performance.now();
  #parts: Parts | null = null;
  /** As last looked at; what differs from it is recorded. */
  #secrets: readonly SecretInfo[] = [];
  #closing: Promise<void> | null = null;
  #selfTestTimer: NodeJS.Timeout | undefined;
  #reloading: Promise<unknown> = Promise.resolve();
  #testing: Promise<unknown> = Promise.resolve();

  constructor(config: GatewayConfig, options: GatewayOptions) {
    this.#config = config;
    this.#options = options;
    this.#log = createLog(options.writeLog ?? ((line) => process.stderr.write(line)), (text) =>
      this.#redactor.redact(text),
    );
    this.#policies = new Policies(config.policies.dir);
  }

  get proxyAddresses(): readonly ListenAddress[] {
    return this.#proxyAddresses;
  }

  async start(): Promise<void> {
    const config = this.#config;
    mkdirSync(this.#runDir, { recursive: true, mode: 0o700 });
    const vault = await Vault.open({ file: config.vault.file, key: this.#keySource() });
    this.#undo.push(() => vault.close());
    this.#secrets = vault.list();
    const audit = await this.#openAudit(vault);
    const ca = await InterceptionCa.open({ store: vault });
    const selfTest = await SelfTest.create(this.#runDir);
    this.#undo.push(() => selfTest.close());
    const credentials = this.#credentials(vault, selfTest);
    const placeholders = createPlaceholders(await placeholderKey(vault));
    await this.#loadPolicies(audit);
    const context = this.#context({ audit, ca, credentials, placeholders });
    const server = new EgressServer(context, () => {
      this.#coarseNow = performance.now();
    });
    this.#undo.push(() => server.close());
    this.#parts = {
      vault,
      audit,
      ca,
      credentials,
      placeholders,
      server,
      context,
      selfTest,
      metrics: createMetrics(this.#stats, audit),
    };
    this.#writeBundle(ca);
    for (const caller of config.callers) await this.#addConfigured(this.#parts, caller);
    for (const address of config.proxy.listen) this.#proxyAddresses.push(await server.listen(address));
    audit.event({ kind: 'admin.start', actor: 'gateway', detail: { listeners: this.#listenerNames() } });
    await this.selftest();
  }

  status(): GatewayStatus {
    return {
      startedAt: this.#startedAt,
      listeners: this.#listenerNames(),
      generation: this.#policies.generation,
      policies: this.#policies
        .loaded()
        .map(({ info, compiled }) => ({ name: info.name, digest: info.digest, rules: compiled.ruleCount })),
      callers: this.#callers.size,
      audit: { ...this.#open().audit.status() },
      refusing: this.#refusing,
      connections: this.#stats.openConnections,
      requests: this.#stats.requests,
    };
  }

  /** Reloads run one after the other: two at once could mix their generations. */
  reload(actor: string): Promise<ReloadReport> {
    const run = this.#reloading.then(() => this.#reload(actor));
    this.#reloading = run.catch(() => {});
    return run;
  }

  /** One at a time: two would take each other's caller for a canary that got through. */
  selftest(): Promise<SelftestReport> {
    const run = this.#testing.then(() => this.#selftest());
    this.#testing = run.catch(() => {});
    return run;
  }

  async #selftest(): Promise<SelftestReport> {
    const { audit, selfTest, context } = this.#open();
    const [listener] = this.#proxyAddresses;
    if (listener === undefined)
      throw new GatewayError('GATEWAY_SELFTEST_FAILED', 'Cannot run the self-test: no proxy listener');
    const report = await selfTest.run(context, listener);
    const failed = report.checks.filter((check) => !check.ok);
    const names = failed.map((check) => check.name).join(', ');
    this.#refusing = report.ok ? null : names;
    audit.event({
      kind: 'selftest',
      verdict: report.ok ? 'allow' : 'error',
      code: report.ok ? 'passed' : 'failed',
      reason: names,
      detail: {
        checks: report.checks.length,
        failed: failed.map(({ name, expected, got }) => ({ name, expected, got })),
      },
    });
    if (!report.ok) this.#onSelfTestFailed(failed);
    return report;
  }

  /**
   * After a leak the gate stays shut until a person reloads or runs the self-test. A check that could not run (a machine too busy)
   * is repeated, so that nobody has to open the gate again by hand.
   */
  #onSelfTestFailed(failed: SelftestReport['checks']): void {
    const seen = failed.map(({ name, got }) => `${name}: ${got}`);
    this.#log('error', 'self-test failed: all traffic is refused', { failed: seen });
    if (failed.some((check) => check.leaked)) return;
    clearTimeout(this.#selfTestTimer);
    this.#selfTestTimer = setTimeout(() => {
      this.selftest().catch((error) => this.#log('error', 'self-test could not run', errorFields(error)));
    }, SELFTEST_RETRY_MS);
    this.#selfTestTimer.unref();
  }

  async attach(options: AttachOptions): Promise<AttachedSandbox> {
    const parts = this.#open();
    const [listener] = this.#proxyAddresses;
    if (listener === undefined) throw new GatewayError('GATEWAY_CALLER_INVALID', 'Cannot attach: no proxy listener');
    const slot = this.#policies.slot(options.policy);
    if (slot.current === null)
      throw new GatewayError('GATEWAY_POLICY_MISSING', `Cannot attach: no policy is named ${options.policy}`);
    const id = `sbx-${randomBytes(8).toString('hex')}`;
    const token = randomBytes(TOKEN_BYTES).toString('base64url');
    const caller = createCaller({ id, policy: slot, labels: options.labels, token });
    this.#callers.add(caller);
    const socketPath = options.socket === true ? join(this.#runDir, `${id}.sock`) : null;
    try {
      if (socketPath !== null) await parts.server.listenUnix(socketPath, caller);
    } catch (error) {
      this.#callers.remove(id);
      throw error;
    }
    parts.audit.event({
      kind: 'sandbox.attach',
      actor: options.actor,
      sandbox: caller.info,
      policy: slot.current.info,
    });
    const proxyUrl = `http://${id}:${token}@${hostPort(listener.host, listener.port)}`;
    const stand = new Map(
      slot.current.compiled.credentials.map(({ spec }) => [spec.name, parts.placeholders.issue(id, spec.name)]),
    );
    return {
      id,
      token,
      proxyUrl,
      socketPath,
      caBundlePath: this.#bundlePath,
      environment: sandboxEnvironment(proxyUrl, this.#bundlePath, stand),
    };
  }

  async detach(id: string, actor: string): Promise<boolean> {
    const { server, audit } = this.#open();
    const caller = this.#callers.get(id);
    if (caller === undefined || caller.isSelfTest) return false;
    this.#callers.remove(id);
    await server.drop(caller);
    audit.event({ kind: 'sandbox.detach', actor, sandbox: caller.info });
    return true;
  }

  metrics(): Promise<string> {
    return this.#open().metrics();
  }

  /** Twice is safe. Stops accepting, drains, then closes what was opened, newest first. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#selfTestTimer);
    await this.#reloading;
    for (const undo of this.#undo.reverse()) await undo();
  }

  async #reload(actor: string): Promise<ReloadReport> {
    const { audit, credentials, server, vault } = this.#open();
    this.#recordVaultChanges(vault, audit);
    const result = await this.#policies.reload();
    credentials.invalidate();
    audit.event({
      kind: 'policy.reload',
      actor,
      verdict: result.ok ? 'allow' : 'error',
      code: result.ok ? 'loaded' : 'refused',
      reason: result.problems,
      detail: { generation: this.#policies.generation, changed: result.changed },
    });
    if (!result.ok) {
      const { generation } = this.#policies;
      this.#log('warn', 'reload refused: what was loaded stays in force', { generation, problems: result.problems });
    }
    if (result.changed.length > 0) {
      const alive = new Set(this.#policies.loaded().map(({ info }) => info.generation));
      server.revoke((key) => !alive.has(Number(key.split(' ')[1])));
    }
    await this.selftest();
    return { ok: result.ok, generation: this.#policies.generation, problems: result.problems };
  }

  async #loadPolicies(audit: AuditLog): Promise<void> {
    const result = await this.#policies.reload();
    if (!result.ok)
      throw new GatewayError('GATEWAY_POLICY_INVALID', `Cannot start: a policy does not load\n${result.problems}`);
    for (const { info } of this.#policies.loaded())
      audit.event({ kind: 'policy.load', actor: 'gateway', policy: info });
  }

  async #openAudit(vault: Vault): Promise<AuditLog> {
    const { dir, ...config } = this.#config.audit;
    const redact = (text: string) => this.#redactor.redact(text);
    const audit = await AuditLog.open({
      dir,
      node: hostname(),
      signer: createAuditSigner(await auditKey(vault)),
      config,
      redact,
    });
    this.#undo.push(async () => {
      this.#recordVaultChanges(vault, audit);
      audit.event({ kind: 'admin.stop', actor: 'gateway' });
      await audit.close();
    });
    return audit;
  }

  #recordVaultChanges(vault: Vault, audit: AuditLog): void {
    try {
      const secrets = vault.list();
      for (const { change, name, version, by } of vaultChanges(this.#secrets, secrets))
        audit.event({ kind: 'vault.change', actor: by ?? 'unknown', code: change, detail: { name, version } });
      this.#secrets = secrets;
    } catch (error) {
      // The credentials that need the file fail by themselves, and closed.
      this.#log('error', 'the vault cannot be read', errorFields(error));
    }
  }

  #credentials(vault: Vault, selfTest: SelfTest): ManagedCredentialSource {
    // The self-test's token is seen only through this object, never in the environment of a process.
    const env = Object.assign(Object.create(process.env) as Record<string, string>, selfTest.environment); // process.env holds strings
    const resolver = createResolver({ vault, baseDir: this.#config.home, env });
    const credentials = createCredentialSource({ resolver, redactor: this.#redactor });
    this.#undo.push(() => {
      credentials.close();
      resolver.close();
    });
    return credentials;
  }

  #context(parts: Pick<Parts, 'audit' | 'ca' | 'credentials' | 'placeholders'>): EgressContext {
    const limits = { ...defaultLimits, ...this.#options.limits };
    const isShared = (this.#options.wireMode ?? 'direct') === 'direct';
    const pool = new UpstreamPool(limits, () => this.#coarseNow);
    const resolve = this.#options.resolve ?? createDnsResolver(this.#config.egress.resolver);
    const isOwnListener = (address: string, port: number) =>
      this.#proxyAddresses.some((own) => own.port === port && isSameHost(own.host, address));
    const sharedBuffer = Buffer.allocUnsafeSlow(SHARED_READ_BYTES);
    const dialer = new Dialer({
      egress: this.#config.egress,
      limits,
      resolve,
      isOwnListener,
      ...(isShared ? { sharedBuffer } : {}),
    });
    return {
      ...parts,
      limits,
      callers: this.#callers,
      redactor: this.#redactor,
      dialer,
      pool,
      pins: new Map(this.#config.upstreams.map((pin) => [pin.name, pin])),
      stats: this.#stats,
      wireMode: this.#options.wireMode ?? 'direct',
      newId: createUlid(),
      refusing: () => this.#refusing,
      isStopping: () => this.#isStopping,
      coarseNow: () => this.#coarseNow,
      timed: new Set(),
      sessions: new Set(),
      onFault: (where, error) => {
        this.#stats.internalErrors++;
        this.#log('error', `${where} failed`, errorFields(error));
      },
    };
  }

  async #addConfigured(parts: Parts, config: CallerConfig): Promise<void> {
    const token = config.token === null ? null : await readToken(config.token, this.#config.home);
    const caller = createCaller({
      id: config.id,
      policy: this.#policies.slot(config.policy),
      labels: config.labels,
      token,
    });
    this.#callers.add(caller);
    if (config.socket !== null) await parts.server.listenUnix(config.socket, caller);
  }

  #keySource(): KeySource {
    const { key } = this.#config.vault;
    if (this.#options.key !== undefined) return this.#options.key;
    if (key.kind === 'file' || key.kind === 'passphrase') return key;
    throw new GatewayError(
      'GATEWAY_CONFIG_INVALID',
      `Cannot open the vault: its key comes from a ${key.kind}, which the caller must supply`,
    );
  }

  #writeBundle(ca: InterceptionCa): void {
    writeFileSync(this.#bundlePath, caBundle(ca.certPem));
    // Certificates are public: where the folder is opened to a sandbox's user, the file needs nothing more.
    chmodSync(this.#bundlePath, 0o644);
    this.#undo.push(() => rmSync(this.#bundlePath, { force: true }));
  }

  get #runDir(): string {
    return this.#options.runDir ?? join(this.#config.home, 'run');
  }

  get #bundlePath(): string {
    return join(this.#runDir, 'ca-bundle.pem');
  }

  #listenerNames(): string[] {
    return this.#proxyAddresses.map(({ host, port }) => hostPort(host, port));
  }

  #open(): Parts {
    if (this.#parts === null)
      throw new GatewayError('GATEWAY_NOT_RUNNING', 'Cannot use the gateway: it has not started');
    return this.#parts;
  }
}

interface Parts {
  readonly vault: Vault;
  readonly audit: AuditLog;
  readonly ca: InterceptionCa;
  readonly credentials: ManagedCredentialSource;
  readonly placeholders: Placeholders;
  readonly server: EgressServer;
  readonly context: EgressContext;
  readonly selfTest: SelfTest;
  readonly metrics: () => Promise<string>;
}

/** The wildcard addresses listen on all: any own address with that port is this gateway. */
function isSameHost(own: string, address: string): boolean {
  return own === address || own === '0.0.0.0' || own === '::';
}

/** The proxy password of a configured caller; the reference was checked by the configuration loader. */
async function readToken(reference: string, baseDir: string): Promise<string> {
  const resolver = createResolver({ baseDir });
  try {
    return (await resolver.resolve(reference)).value.toString('latin1');
  } finally {
    resolver.close();
  }
}
