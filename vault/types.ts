import type { CompiledCredential } from '../policy/types.ts';

/** Where the master key of a sealed file comes from. The value itself never passes through argv. */
export type KeySource =
  /** 32 random bytes as base64 or hex in a file that only its owner can read (mode 0600 or stricter). */
  | { readonly kind: 'file'; readonly path: string }
  /** scrypt over a passphrase; the salt and cost sit in the sealed file's header. */
  | { readonly kind: 'passphrase'; readonly passphrase: () => Promise<string> };

/** What `list` and `show` may tell of a secret: everything but the value. */
export interface SecretInfo {
  readonly name: string;
  readonly version: number;
  readonly versions: number;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly sizeBytes: number;
  /** Who wrote the newest version, as told by the caller of `set`. */
  readonly updatedBy?: string;
}

/** A credential whose secret is open and whose header line is built: what the data path injects without another copy. */
export interface PreparedCredential {
  readonly credential: CompiledCredential;
  readonly name: string;
  /** Version of the secret, `env`/`file` references count from 1 at each changed value. */
  readonly version: string;
  /** Lower-case header name. */
  readonly slot: string;
  /** The whole line with CRLF: `authorization: Bearer …\r\n`, latin1 bytes. */
  readonly line: Buffer;
  /** Byte forms of the value that must never come back to the sandbox: the secret itself and the injected header value. */
  readonly echoes: readonly Buffer[];
}

/** What the egress path needs of the vault. */
export interface CredentialSource {
  /** The prepared credential if its secret is open already; undefined means: `await prepare`. */
  ready(credential: CompiledCredential): PreparedCredential | undefined;
  /**
   * Opens the secret and builds the header line. Concurrent calls share one read; failures are kept for a short, named time.
   * @throws VaultError `VAULT_SOURCE_UNAVAILABLE`, `VAULT_SECRET_MISSING`, `VAULT_SECRET_MALFORMED`
   */
  prepare(credential: CompiledCredential): Promise<PreparedCredential>;
}

/** Replaces every known secret value in a text by `[redacted:NAME]`. */
export interface Redactor {
  add(name: string, value: string | Buffer): void;
  redact(text: string): string;
}

/** A leaf for one host as the TLS layer wants it. */
export interface Leaf {
  /** PEM chain: leaf, then CA. */
  readonly certPem: string;
  readonly keyPem: string;
  readonly notAfter: Date;
}
