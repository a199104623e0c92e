/**
 * The shapes `policy/` gives to other folders. Pure data: nothing here holds a socket, a secret or a clock.
 * Fields marked (later) have their room already; the loader refuses them clearly until the code that judges them lands.
 */

/** What a rule does when it matches. `ask` is (later). */
export type Effect = 'allow' | 'deny' | 'ask';

/** How a rule's traffic is spoken. `tcp` and `udp` are (later). */
export type Protocol = 'http' | 'tcp' | 'udp';

export type Scheme = 'https' | 'http';

/** What happens to the client's own value in a slot the gateway fills: refused, overwritten, or left alone. */
export type OnClientCredential = 'deny' | 'replace' | 'keep';

/** A policy document as loaded: every value checked, every name canonical, nothing resolved against the network. */
export interface PolicyDocument {
  readonly version: 1;
  /** `[a-z0-9-]{1,63}` */
  readonly name: string;
  readonly description?: string;
  readonly owner?: string;
  /** (later) Names of policies merged first. */
  readonly extends?: readonly string[];
  /** `observe` is (later). */
  readonly mode: 'enforce' | 'observe';
  /** CIDRs of private space (RFC 1918, CGNAT, ULA) this policy opens; everything else of the never-list stays shut. */
  readonly allowPrivate: readonly string[];
  readonly rules: readonly Rule[];
  readonly credentials: readonly CredentialSpec[];
  readonly tests: readonly PolicyTest[];
}

export interface Rule {
  readonly name: string;
  readonly effect: Effect;
  readonly reason?: string;
  readonly protocol: Protocol;
  readonly scheme: Scheme;
  /** Canonical host patterns: `api.x.com`, `*.x.com`, or `**` (deny rules only). */
  readonly hosts: readonly string[];
  /** Canonical CIDRs; the only way to name raw-address destinations. */
  readonly cidrs: readonly string[];
  /** Upper-case methods, presets already expanded; empty = any method. GET implies HEAD. */
  readonly methods: readonly string[];
  /** Canonical path globs; empty = any path. */
  readonly paths: readonly string[];
  /** Key → glob; every value of a repeated key must match. */
  readonly query: Readonly<Record<string, string>>;
  /** Empty = the scheme's default port. */
  readonly ports: readonly number[];
  readonly encodedSlash: boolean;
  readonly unsafeWide: boolean;
  /** `passthrough` is (later). */
  readonly tls: 'intercept' | 'passthrough';
  /** (later) */
  readonly limits?: RuleLimits;
  /** (later) */
  readonly ask?: { readonly timeoutMs: number; readonly approvers: readonly string[] };
  /** 1-based line of the rule in its file, for messages. */
  readonly line: number;
}

/** (later) Bounds of one rule, per sandbox unless `shared`. */
export interface RuleLimits {
  readonly ratePerSecond?: number;
  readonly burst?: number;
  readonly concurrent?: number;
  readonly requestBytes?: number;
  readonly responseBytes?: number;
  readonly shared?: boolean;
}

export interface CredentialSpec {
  readonly name: string;
  /** `vault:NAME`, `env:NAME` or `file:PATH`; never a literal value. */
  readonly secret: string;
  readonly bind: CredentialBind;
  readonly inject: CredentialInject;
  readonly allowCleartext: boolean;
  readonly onClientCredential: OnClientCredential;
  readonly line: number;
}

/** Where a credential may go. Same meaning as the fields of a rule; an allow rule never widens it. */
export interface CredentialBind {
  readonly hosts: readonly string[];
  readonly methods: readonly string[];
  readonly paths: readonly string[];
  /** Empty = 443 (and 80 when `allowCleartext`). */
  readonly ports: readonly number[];
}

export type CredentialInject =
  /** `format` contains `{secret}` exactly once; `header` is a lower-case token that is not a framing or hop-by-hop header. */
  | { readonly kind: 'header'; readonly header: string; readonly format: string }
  /** `Authorization: Basic base64(username:secret)`. */
  | { readonly kind: 'basic'; readonly username: string };

export interface PolicyTest {
  readonly method: string;
  readonly url: string;
  readonly expect: 'allow' | 'deny' | 'ask';
  readonly rule?: string;
  readonly credential?: string;
  readonly line: number;
}

/** One thing wrong with (or, as a warning, questionable in) a document. Positions are 1-based. */
export interface PolicyProblem {
  /** Stable: `POLICY_…`, listed in policy/README.md. */
  readonly code: string;
  readonly severity: 'error' | 'warning';
  readonly message: string;
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** The offending text, cut to 80 characters. */
  readonly excerpt?: string;
  /** What to do: a did-you-mean or a corrected form. */
  readonly hint?: string;
}

/** Where a request goes, in its one canonical form. */
export type Destination =
  /** Lower-case A-labels, no trailing dot. */
  | { readonly kind: 'name'; readonly name: string }
  /** Dotted quad, or RFC 5952 text. IPv4-mapped IPv6 is already unwrapped to its IPv4. */
  | { readonly kind: 'address'; readonly address: string };

/** A request target in its one canonical form: what is matched is what is sent. */
export interface CanonicalTarget {
  /** Starts with `/`; dot segments resolved, doubled slashes collapsed, unreserved characters decoded, `%XX` upper-case. */
  readonly path: string;
  /** The query as sent, without `?`; null when there is none. */
  readonly query: string | null;
  /** The path holds `%2F`: only rules with `encodedSlash` may allow it, and the decoded form must match as well. */
  readonly encodedSlash: boolean;
  /** The path holds `%25`: refused (400 `double_encoding`) when a path rule or a credential applies. */
  readonly encodedPercent: boolean;
}

/** Everything `decide` looks at. Build `destination` and `target` only with the canonical functions of this folder. */
export interface HttpFacts {
  readonly scheme: Scheme;
  readonly destination: Destination;
  /** 1..65535 */
  readonly port: number;
  /** The method token exactly as sent. */
  readonly method: string;
  readonly target: CanonicalTarget;
}

export type DecisionCode =
  | 'allowed'
  /** A deny rule won. */
  | 'policy_denied'
  /** An ask rule won (later). */
  | 'ask_required'
  /** No allow rule matched. */
  | 'default_denied'
  /** The built-in never-list. */
  | 'never_list'
  /** Private address space the policy did not open with `allowPrivate`. */
  | 'private_address'
  /** A credential is bound to this route and does not travel over plain http. */
  | 'cleartext_credential'
  /** `%2F` or `%25` in a path where the matching rules do not take it: answered 400. */
  | 'encoded_slash'
  | 'double_encoding'
  /** A rule could not be evaluated; that denies. */
  | 'rule_failed';

export interface Decision {
  readonly verdict: 'allow' | 'deny' | 'ask';
  readonly code: DecisionCode;
  /** The winning rule, or null (never-list, default deny). */
  readonly rule: string | null;
  /** For people: why. Never holds a secret. */
  readonly reason: string;
  /** For the caller: what to do about it. */
  readonly hint: string;
  /** Credentials bound to exactly this request; empty unless the verdict is allow. */
  readonly credentials: readonly CompiledCredential[];
}

/** A credential ready to be matched. `id` is its index in the policy. */
export interface CompiledCredential {
  readonly id: number;
  readonly spec: CredentialSpec;
  /** The lower-case header it fills. */
  readonly slot: string;
}

export type AddressClass =
  | 'public'
  | 'private'
  | 'loopback'
  | 'unspecified'
  | 'link_local'
  | 'metadata'
  | 'multicast'
  | 'broadcast'
  | 'documentation'
  | 'benchmark'
  | 'reserved'
  | 'own';

export interface AddressVerdict {
  readonly allowed: boolean;
  readonly class: AddressClass;
  readonly code: 'allowed' | 'never_list' | 'private_address';
  readonly reason: string;
}

/** What a host, a request or an answer could not be turned into its canonical form for. Answered with `status`. */
export interface CanonicalFailure {
  readonly ok: false;
  /** Stable, e.g. `host_malformed`; listed in policy/README.md. */
  readonly code: string;
  /** HTTP status to answer with: 400 unless said otherwise. */
  readonly status: number;
  readonly reason: string;
}

export type Canonical<T> = { readonly ok: true; readonly value: T } | CanonicalFailure;
