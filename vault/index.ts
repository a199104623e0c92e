/** Secrets at rest, references to them, the ways to inject them, redaction, and the interception authority. The only door of this folder. */
export {
  CA_LIFETIME_MS,
  type CaCreateOptions,
  type CaOptions,
  type CaStore,
  InterceptionCa,
  LEAF_LIFETIME_MS,
  MAX_SECURE_CONTEXTS,
} from './ca.ts';
export { type CredentialSourceOptions, createCredentialSource, type ManagedCredentialSource } from './credentials.ts';
export { VaultError, type VaultErrorCode, vaultErrorCodes } from './errors.ts';
export { createKeyFile } from './key-source.ts';
export {
  createPlaceholders,
  PLACEHOLDER_LENGTH,
  PLACEHOLDER_PATTERN,
  PLACEHOLDER_PREFIX,
  type Placeholders,
} from './placeholders.ts';
export type { SealedPurpose } from './purposes.ts';
export { MAX_REDACTED_QUERY_BYTES, redactQuery } from './redact-query.ts';
export { createRedactor, type SecretRedactor } from './redactor.ts';
export { formatReference, parseReference, type Reference } from './reference.ts';
export {
  createResolver,
  type ResolvedSecret,
  type ResolverOptions,
  type SecretResolver,
  type SecretStore,
} from './references.ts';
export { isSecretName } from './secret-name.ts';
export { MAX_VALUE_BYTES } from './secret-value.ts';
export type * from './types.ts';
export { MAX_VERSIONS, Vault, type VaultOptions } from './vault.ts';
