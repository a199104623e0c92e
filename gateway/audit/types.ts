/** What the gateway's other rooms hand to the audit log. The writer adds `v`, `seq`, `time`, `node`, `prev` and `hash`. */
export type AuditKind =
  | 'http.request'
  | 'tcp.connect'
  | 'tls.handshake'
  | 'dns.finding'
  | 'policy.load'
  | 'policy.reload'
  | 'vault.change'
  | 'sandbox.attach'
  | 'sandbox.detach'
  | 'admin.start'
  | 'admin.stop'
  | 'audit.checkpoint'
  | 'audit.gap'
  | 'selftest';

export type AuditVerdict = 'allow' | 'deny' | 'ask' | 'observe-deny' | 'error';

/** One decision on the egress path; the hot record, serialised field by field without a generic walk. Absent = null. */
export interface RequestRecord {
  readonly kind: 'http.request' | 'tcp.connect' | 'tls.handshake';
  /** ULID, also told to a refused caller. */
  readonly id: string;
  readonly sandbox: { readonly id: string; readonly labels: Readonly<Record<string, string>> } | null;
  readonly policy: { readonly name: string; readonly digest: string; readonly generation: number } | null;
  readonly verdict: AuditVerdict;
  readonly rule: string | null;
  readonly code: string;
  readonly reason: string;
  readonly conn: {
    readonly via: 'connect' | 'absolute' | 'transparent' | 'socks' | 'dns' | 'ingress';
    /** Peer as `address:port`, or `unix`. */
    readonly src: string;
    readonly sni: string | null;
    readonly alpn: string | null;
    readonly tls: string | null;
  };
  /** null when no request line could be read. Strings from the wire may hold anything: escaped by the writer. */
  readonly request: {
    readonly method: string;
    readonly scheme: string;
    readonly host: string;
    readonly port: number;
    readonly path: string;
    /** Query keys with values redacted (`a=*&b=*`), or null. */
    readonly query: string | null;
    readonly bytes: number;
  } | null;
  /** First bytes of a message that did not parse, at most 256, for `raw` (escaped); null otherwise. */
  readonly raw: string | null;
  readonly upstream: {
    readonly address: string;
    readonly tls: string | null;
    readonly certSha256: string | null;
    readonly connectMs: number;
  } | null;
  readonly response: {
    readonly status: number;
    readonly bytes: number;
    readonly firstByteMs: number;
    readonly durationMs: number;
  } | null;
  readonly credential: { readonly name: string; readonly version: string; readonly slots: readonly string[] } | null;
  /** Echoed secret values replaced in the response. */
  readonly redactions: number;
}

/** Any other record: rare, serialised generically. */
export interface EventRecord {
  readonly kind: Exclude<AuditKind, RequestRecord['kind']>;
  readonly id?: string;
  readonly sandbox?: { readonly id: string; readonly labels: Readonly<Record<string, string>> };
  readonly actor?: string;
  readonly policy?: { readonly name: string; readonly digest: string; readonly generation: number };
  readonly verdict?: AuditVerdict;
  readonly code?: string;
  readonly reason?: string;
  /** Further fields of the kind, plain JSON. */
  readonly detail?: Readonly<Record<string, unknown>>;
}

/** A record whose every statement is settled, though not yet written down: the hot path leaves that to a batch. */
export interface SettledRecord {
  toRecord(): RequestRecord;
}

/** What the egress path needs of the audit log. */
export interface AuditSink {
  /**
   * Takes a place in the bounded queue for one record. False = full or failed: the request must be refused, nothing may be forwarded.
   * Each true must be followed by exactly one `request(...)` or `release()`.
   */
  reserve(): boolean;
  release(): void;
  /** A refusal for which there was no place: counted, and told in an `audit.gap` when there is room again. */
  missed(): void;
  /** Fills a reserved place; a settled record is put together when its turn comes, within milliseconds. */
  request(record: RequestRecord | SettledRecord): void;
  /** Queues an event; never refused for room (events are rare), counts against the bound. */
  event(record: EventRecord): void;
}
