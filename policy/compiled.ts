/** What `compile` makes of a document: everything parsed, frozen and indexed by host. */
import type { Cidr } from './address.ts';
import type { HostPattern } from './host-pattern.ts';
import type { MethodSet } from './methods.ts';
import type { PathPattern } from './path-pattern.ts';
import type { QueryCondition } from './query-pattern.ts';
import type { CompiledCredential, Decision, PolicyDocument, Rule } from './types.ts';

/** One immutable generation of a policy. */
export interface CompiledPolicy {
  readonly name: string;
  /** SHA-256 in hex over the canonical JSON of the document without line numbers and tests. */
  readonly digest: string;
  readonly mode: PolicyDocument['mode'];
  readonly document: PolicyDocument;
  readonly credentials: readonly CompiledCredential[];
  readonly ruleCount: number;
  /** Bytes of that canonical JSON. */
  readonly sizeBytes: number;
  /** For this folder only; not enumerable. */
  readonly index: PolicyIndex;
}

export interface PolicyIndex {
  readonly allowPrivate: readonly Cidr[];
  readonly exact: ReadonlyMap<string, Bucket>;
  readonly below: ReadonlyMap<string, Bucket>;
  /** Bit n: some `below` suffix has n labels (31 and more share the last bit). Saves look-ups for absent depths. */
  readonly belowDepths: number;
  readonly any: Bucket | null;
  readonly cidrs: CidrIndex;
  /** Sorted by name. */
  readonly rules: readonly CompiledRule[];
  readonly bindings: readonly CompiledBinding[];
  /** The one answer to a CONNECT that some rule may allow. */
  readonly connectAllowed: Decision;
}

/** Everything that names one host pattern or one block. */
export interface Bucket {
  readonly deny: RuleSet;
  readonly ask: RuleSet;
  readonly allow: RuleSet;
  /** What is allowed here, for hints. */
  readonly examples: readonly string[];
  readonly bindings: readonly CompiledBinding[];
}

/** Rules of one effect, sorted by name. */
export interface RuleSet {
  readonly rules: readonly CompiledRule[];
  /** Absent where looking at each rule is as fast. */
  readonly segments: SegmentIndex | null;
}

/** Rules by a literal first segment of a path pattern, else by a literal last one, else all in `rest`. */
export interface SegmentIndex {
  readonly first: ReadonlyMap<string, readonly CompiledRule[]>;
  readonly last: ReadonlyMap<string, readonly CompiledRule[]>;
  readonly rest: readonly CompiledRule[];
}

/** Blocks by prefix length, longest first. IPv6 networks are keyed by their text. */
export interface CidrIndex {
  readonly v4: readonly { readonly prefix: number; readonly networks: ReadonlyMap<number, Bucket> }[];
  readonly v6: readonly { readonly prefix: number; readonly networks: ReadonlyMap<string, Bucket> }[];
}

/** What a request is compared with, beyond its host. */
export interface Conditions {
  /** Compared the safe way: folded, any form of the path, any value of the query. */
  readonly isDeny: boolean;
  /** null = either scheme. */
  readonly scheme: 'https' | 'http' | null;
  /** null = every port. */
  readonly ports: readonly number[] | null;
  readonly methods: MethodSet;
  /** Empty = any path. Folded in deny rules. */
  readonly paths: readonly PathPattern[];
  /** Empty = any query. Folded in deny rules. */
  readonly query: readonly QueryCondition[];
  readonly encodedSlash: boolean;
}

export interface CompiledRule extends Conditions {
  readonly rule: Rule;
  readonly hosts: readonly HostPattern[];
  readonly cidrs: readonly Cidr[];
  /** The decision when this rule wins without a credential. */
  readonly decision: Decision;
  /** The same with credentials, by their ids; filled at first use, bounded by MAX_DECISIONS_PER_RULE. */
  readonly withCredentials: Map<string | number, Decision>;
}

export interface CompiledBinding extends Conditions {
  readonly credential: CompiledCredential;
  /** The list of just this credential, made once. */
  readonly alone: readonly CompiledCredential[];
  readonly hosts: readonly HostPattern[];
  /** Plain http requests to the same route on any port, which are refused; null when the credential may travel there. */
  readonly cleartext: Conditions | null;
}
