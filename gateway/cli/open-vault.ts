/** The vault as commands take it: its key from the file, the environment or a prompt. */
import { existsSync } from 'node:fs';
import type { KeySource, Vault } from '../../vault/index.ts';
import { GatewayError } from '../errors.ts';
import type { GatewayConfig } from '../types.ts';
import type { Cli } from './cli.ts';
import { askHidden, askTwice } from './prompt.ts';

/**
 * The key source the vault understands. A passphrase is asked for at most once for each source made, and typed twice for a
 * vault that is yet to be made: nobody could open it after a slip.
 */
export function keySource(cli: Cli, { file, key }: GatewayConfig['vault']): KeySource {
  if (key.kind === 'file' || key.kind === 'passphrase') return key;
  if (key.kind === 'env') {
    // Looked for now: the vault would say only that the source failed.
    const value = passphraseOf(cli, key.name);
    return { kind: 'passphrase', passphrase: async () => value };
  }
  let asked: Promise<string> | null = null;
  const ask = async (): Promise<string> => {
    const question = 'vault passphrase';
    const answer = existsSync(file) ? await askHidden(cli, question) : await askTwice(cli, question);
    return answer.toString('utf8');
  };
  return {
    kind: 'passphrase',
    passphrase: () => {
      asked ??= ask();
      return asked;
    },
  };
}

/** The same configuration with a key source that asks nobody but the terminal: what the gateway is started with. */
export function withKeySource(cli: Cli, config: GatewayConfig): GatewayConfig {
  return { ...config, vault: { ...config.vault, key: keySource(cli, config.vault) } };
}

/** Opens the sealed file for one action and wipes its keys afterwards. */
export async function withVault<T>(cli: Cli, config: GatewayConfig, use: (vault: Vault) => T | Promise<T>): Promise<T> {
  const { Vault } = await import('../../vault/index.ts');
  const vault = await Vault.open({ file: config.vault.file, key: keySource(cli, config.vault) });
  try {
    return await use(vault);
  } finally {
    vault.close();
  }
}

function passphraseOf(cli: Cli, name: string): string {
  const value = cli.env[name];
  if (value !== undefined && value !== '') return value;
  throw new GatewayError('GATEWAY_CONFIG_INVALID', `Cannot open the vault: the environment has no ${name}`);
}
