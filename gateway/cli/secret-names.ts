/** Names of environment variables that hold secrets of the gateway, so that no command inherits them. */
import type { PolicyDocument } from '../../policy/types.ts';
import type { GatewayConfig } from '../types.ts';

/** From the `env:` references of the policies, the callers' tokens and the vault's passphrase. */
export function secretNames(config: GatewayConfig, documents: readonly PolicyDocument[]): readonly string[] {
  const references = [
    ...documents.flatMap((document) => document.credentials.map((credential) => credential.secret)),
    ...config.callers.map((caller) => caller.token ?? ''),
  ];
  const names = references.flatMap((reference) =>
    reference.startsWith('env:') ? [reference.slice('env:'.length)] : [],
  );
  return config.vault.key.kind === 'env' ? [...names, config.vault.key.name] : names;
}
