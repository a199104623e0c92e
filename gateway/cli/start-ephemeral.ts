/** A gateway inside this process for the life of one command. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatProblems, loadPolicy } from '../../policy/index.ts';
import type { Gateway } from '../api/index.ts';
import { createUlid } from '../audit/index.ts';
import { GatewayError } from '../errors.ts';
import { startGateway } from '../gateway.ts';
import type { GatewayConfig } from '../types.ts';
import { type Cli, UsageError } from './cli.ts';
import { prepareHome } from './first-run.ts';
import { keySource, withKeySource } from './open-vault.ts';
import { guardProcess, processFacts } from './process-hygiene.ts';

export interface Ephemeral {
  readonly gateway: Gateway;
  /** The policy commands are judged by. */
  readonly policy: string;
  readonly policyDir: string;
  close(): Promise<void>;
}

/**
 * Starts it on a free loopback port with the vault and, where no other gateway writes there, the audit log of the home.
 * @param file a policy file to be judged by instead of the home's policies
 */
export async function startEphemeral(cli: Cli, config: GatewayConfig, file: string | null): Promise<Ephemeral> {
  guardProcess(processFacts(cli.env), { unsafeDebug: false });
  const undo: (() => void | Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const step of undo.splice(0).toReversed()) await step();
  };
  try {
    const policies = file === null ? config.policies : folderOf(file, undo);
    const own = withKeySource(cli, {
      ...config,
      policies,
      proxy: { listen: [{ host: '127.0.0.1', port: 0 }] },
      api: { ...config.api, listen: null },
      callers: [],
    });
    for (const line of await prepareHome(own, keySource(cli, own.vault))) cli.note(`sallyport: ${line}`);
    // Not the home's own: a gateway running there would lose its CA bundle when this one ends.
    const gateway = await startWithAudit(cli, own, temporaryFolder(undo));
    undo.push(() => gateway.close());
    const { refusing } = gateway.status();
    if (refusing !== null) {
      throw new GatewayError('GATEWAY_SELFTEST_FAILED', `Cannot run: the boundary self-test failed: ${refusing}`);
    }
    return { gateway, policy: policies.default, policyDir: policies.dir, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** One audit folder has one writer; a second command at the same time writes one of its own, and says where. */
async function startWithAudit(cli: Cli, config: GatewayConfig, runDir: string): Promise<Gateway> {
  try {
    return await startGateway(config, { runDir });
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'GATEWAY_AUDIT_LOCKED') throw error;
    const dir = `${config.audit.dir}-run-${createUlid()()}`;
    cli.note(`sallyport: another process writes ${config.audit.dir}; this run is recorded in ${dir}`);
    return await startGateway({ ...config, audit: { ...config.audit, dir } }, { runDir });
  }
}

function temporaryFolder(undo: (() => void)[]): string {
  const dir = mkdtempSync(join(tmpdir(), 'sallyport-run-'));
  undo.push(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** The gateway takes policies from a folder by name: a private one that holds just this file. */
function folderOf(file: string, undo: (() => void)[]): GatewayConfig['policies'] {
  const source = readPolicy(file);
  const loaded = loadPolicy(source, { file });
  if (!loaded.ok) throw new UsageError(`Cannot use the policy:\n${formatProblems(loaded.problems)}`);
  const dir = temporaryFolder(undo);
  // The bytes that were judged, not whatever the file holds by now.
  writeFileSync(join(dir, `${loaded.document.name}.yaml`), source, { mode: 0o600 });
  return { dir, default: loaded.document.name };
}

function readPolicy(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    const state = cause instanceof Error && 'code' in cause ? String(cause.code) : 'it could not be read';
    throw new UsageError(`Cannot read the policy ${file}: ${state}`);
  }
}
