/** Thrown by `vault/`. Messages name the secret and the source, never a value. */
export class VaultError extends Error {
  readonly code: VaultErrorCode;

  constructor(code: VaultErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'VaultError';
    this.code = code;
  }
}

export type VaultErrorCode = (typeof vaultErrorCodes)[number];

/** Every code is explained in vault/README.md; test/architecture.test.ts checks that. */
export const vaultErrorCodes = [
  'VAULT_KEY_MALFORMED',
  'VAULT_KEY_EXPOSED',
  'VAULT_KEY_WRONG',
  'VAULT_FILE_MISSING',
  'VAULT_FILE_CORRUPT',
  'VAULT_FILE_EXISTS',
  'VAULT_WRITE_FAILED',
  'VAULT_SECRET_MISSING',
  'VAULT_SECRET_MALFORMED',
  'VAULT_NAME_MALFORMED',
  'VAULT_REFERENCE_MALFORMED',
  'VAULT_SOURCE_UNAVAILABLE',
  'VAULT_CA_CORRUPT',
  'VAULT_CA_EXPIRED',
  'VAULT_REDACTOR_FULL',
  'VAULT_CLOSED',
] as const;
