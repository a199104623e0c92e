/** What the API and the command line need of a running gateway. Everything here is plain data or a promise of it. */

export interface Gateway {
  readonly proxyAddresses: readonly { readonly host: string; readonly port: number }[];
  status(): GatewayStatus;
  /** Loads policies and secrets anew; a report that is not ok left everything as it was. */
  reload(actor: string): Promise<ReloadReport>;
  selftest(): Promise<SelftestReport>;
  attach(options: AttachOptions): Promise<AttachedSandbox>;
  /** False when there is no such sandbox. */
  detach(id: string, actor: string): Promise<boolean>;
  /** Prometheus text format 0.0.4. */
  metrics(): Promise<string>;
  close(): Promise<void>;
}

export interface GatewayStatus {
  /** RFC 3339 */
  readonly startedAt: string;
  readonly listeners: readonly string[];
  /** Generation of the policies in force. */
  readonly generation: number;
  readonly policies: readonly { readonly name: string; readonly digest: string; readonly rules: number }[];
  readonly callers: number;
  readonly audit: Readonly<Record<string, unknown>>;
  /** Why all traffic is refused (a failed self-test), or null. */
  readonly refusing: string | null;
  readonly connections: number;
  readonly requests: number;
}

export interface ReloadReport {
  readonly ok: boolean;
  readonly generation: number;
  /** Formatted problems; empty when there are none. */
  readonly problems: string;
}

export interface SelftestReport {
  readonly ok: boolean;
  readonly checks: readonly SelftestCheck[];
}

export interface SelftestCheck {
  readonly name: string;
  readonly ok: boolean;
  /** Something got through or came back that must not; a check can also fail because it could not run. */
  readonly leaked: boolean;
  readonly expected: string;
  readonly got: string;
}

export interface AttachOptions {
  readonly policy: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly actor: string;
  /** Give it a Unix socket of its own. */
  readonly socket?: boolean;
}

/** A caller for as long as it is attached. `token` and `proxyUrl` are its identity: handle them as a secret. */
export interface AttachedSandbox {
  readonly id: string;
  readonly token: string;
  readonly proxyUrl: string;
  readonly socketPath: string | null;
  /** PEM file: the system's CAs and ours. */
  readonly caBundlePath: string;
  /** What a process inside needs in its environment. */
  readonly environment: Readonly<Record<string, string>>;
}
