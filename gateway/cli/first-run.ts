/** What a home needs before a gateway can live in it; made when absent, never changed when there. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { KeySource } from '../../vault/index.ts';
import type { GatewayConfig } from '../types.ts';
import { starterPolicy } from './starter-policy.ts';

/** Makes what is missing and gives one line for each thing made. `config.vault.key` is a source already. */
export async function prepareHome(config: GatewayConfig, key: KeySource): Promise<readonly string[]> {
  const made: string[] = [];
  makeFolder(config.home, made);
  makeFolder(config.policies.dir, made);
  makeStarterPolicy(config, made);
  await makeVault(config, key, made);
  return made;
}

/** Makes the vault and, for a file key, the key. A vault that is there is left alone, also when its key is missing. */
export async function makeVault(config: GatewayConfig, key: KeySource, made: string[]): Promise<void> {
  if (existsSync(config.vault.file)) return;
  const { createKeyFile, Vault } = await import('../../vault/index.ts');
  if (key.kind === 'file' && !existsSync(key.path)) {
    makeFolder(dirname(key.path), made);
    await createKeyFile(key.path);
    made.push(`made the vault key ${key.path}: keep a copy where backups of the vault are not`);
  }
  makeFolder(dirname(config.vault.file), made);
  const vault = await Vault.create({ file: config.vault.file, key });
  vault.close();
  made.push(`made the vault ${config.vault.file}: empty; add secrets with \`sallyport vault set NAME\``);
}

function makeFolder(path: string, made: string[]): void {
  if (existsSync(path)) return;
  mkdirSync(path, { recursive: true, mode: 0o700 });
  made.push(`made ${path}`);
}

/** Only under its own name: a configured default that is not there is a mistake to be told, not to be papered over. */
function makeStarterPolicy(config: GatewayConfig, made: string[]): void {
  if (config.policies.default !== 'default') return;
  const isThere = ['yaml', 'yml', 'json'].some((ending) => existsSync(join(config.policies.dir, `default.${ending}`)));
  if (isThere) return;
  const file = join(config.policies.dir, 'default.yaml');
  writeFileSync(file, starterPolicy, { mode: 0o600, flag: 'wx' });
  made.push(`made the policy ${file}: it allows nothing yet; its comments show how to open something`);
}
