import type { KeySource } from '../vault/types.ts';

/** The configuration file of INTERFACES.md as loaded: every path absolute, every duration in milliseconds. */
export interface GatewayConfig {
  /** `$SALLYPORT_HOME` */
  readonly home: string;
  readonly proxy: { readonly listen: readonly ListenAddress[] };
  /** `socket` is the control socket, mode 0600. */
  readonly api: { readonly listen: ListenAddress | null; readonly socket: string };
  readonly policies: { readonly dir: string; readonly default: string };
  readonly vault: { readonly file: string; readonly key: VaultKeyConfig };
  readonly audit: AuditConfig;
  readonly upstreams: readonly PinnedUpstream[];
  readonly egress: EgressConfig;
  readonly callers: readonly CallerConfig[];
}

export interface ListenAddress {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
}

export type VaultKeyConfig = KeySource | { readonly kind: 'prompt' } | { readonly kind: 'env'; readonly name: string };

export interface AuditConfig {
  readonly dir: string;
  /** `always`: before each batch is acknowledged; `interval`: every second; `never`: left to the kernel. */
  readonly fsync: 'always' | 'interval' | 'never';
  readonly checkpointEveryMs: number;
  /** A file is closed and the chain carried over at this size. */
  readonly rotateBytes: number;
  /** Records that may wait in memory; full = requests are refused 503 `audit_unavailable`. */
  readonly maxQueued: number;
}

/** A destination whose address the operator pins. The policy still decides by name; only DNS and the address check are replaced. */
export interface PinnedUpstream {
  /** Canonical name. */
  readonly name: string;
  readonly address: string;
  /** Port to dial; null = the port the client asked for. */
  readonly port: number | null;
  /** PEM file with the only CAs trusted for this upstream; null = the usual ones. */
  readonly ca: string | null;
}

export interface EgressConfig {
  /** `http://host:port` of a corporate proxy that every connection goes through; null = direct. */
  readonly parentProxy: { readonly host: string; readonly port: number } | null;
  /** PEM file of further trusted CAs. */
  readonly extraCa: string | null;
  /** Resolver addresses; empty = the system's. */
  readonly resolver: readonly string[];
}

/** A caller known from the configuration. Identity is how the connection arrived: this credential, or this socket. */
export interface CallerConfig {
  /** `[a-zA-Z0-9._-]{1,64}` */
  readonly id: string;
  readonly policy: string;
  /** `env:` or `file:` reference of its proxy password; null = only the socket. */
  readonly token: string | null;
  /** Unix socket of its own; null = only the credential. */
  readonly socket: string | null;
  readonly labels: Readonly<Record<string, string>>;
}
