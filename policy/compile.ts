/** Turns a checked document into the immutable form that `decide` asks. */
import { type Cidr, formatCidr, parseCidr } from './address.ts';
import type { Bucket, CidrIndex, CompiledBinding, CompiledPolicy, CompiledRule, PolicyIndex } from './compiled.ts';
import { depthBit, networkKey } from './destination.ts';
import { digestOf } from './digest.ts';
import { PolicyError } from './errors.ts';
import { type HostPattern, parseHostPattern } from './host-pattern.ts';
import { denyMethods, openMethods } from './methods.ts';
import { type PathPattern, parsePathPattern } from './path-pattern.ts';
import { foldQuery, parseQueryGlob, type QueryCondition } from './query-pattern.ts';
import { denyPatterns } from './question.ts';
import { connectAllowed, examplesOf, ruleDecision } from './refusals.ts';
import { ruleSetOf } from './rule-set.ts';
import type { Canonical, CompiledCredential, CredentialSpec, PolicyDocument, Rule } from './types.ts';

/**
 * Compiles a document; rules in any order give the same decisions.
 * @throws PolicyError `POLICY_INVALID` for a document that the loader would not have let through
 */
export function compile(document: PolicyDocument): CompiledPolicy {
  refuseDuplicates(document.rules, 'rule');
  refuseDuplicates(document.credentials, 'credential');
  const credentials = document.credentials.map(credentialOf);
  const rules = document.rules
    .filter((rule) => rule.protocol !== 'udp')
    .map((rule) => compileRule(rule, document))
    .sort((one, other) => (one.rule.name < other.rule.name ? -1 : 1));
  const policy = {
    name: document.name,
    ...digestOf(document),
    mode: document.mode,
    document,
    credentials: Object.freeze(credentials),
    ruleCount: document.rules.length,
  };
  const index = indexOf(document, rules, credentials.map(compileBinding));
  // Not enumerable: a dump of a policy shows its document, not its maps. The cast holds: all other fields are in `policy`.
  return Object.freeze(Object.defineProperty(policy, 'index', { value: index }) as CompiledPolicy);
}

function refuseDuplicates(named: readonly { readonly name: string }[], kind: string): void {
  const seen = new Set<string>();
  for (const { name } of named) {
    if (seen.has(name)) {
      throw new PolicyError('POLICY_INVALID', `Cannot compile ${kind} ${name}: the name is used twice`);
    }
    seen.add(name);
  }
}

function credentialOf(spec: CredentialSpec, id: number): CompiledCredential {
  return Object.freeze({
    id,
    spec,
    slot: spec.inject.kind === 'header' ? spec.inject.header.toLowerCase() : 'authorization',
  });
}

function compileRule(rule: Rule, document: PolicyDocument): CompiledRule {
  const isDeny = rule.effect === 'deny';
  const subject = `rule ${rule.name}`;
  const hosts = rule.hosts.map((host) => must(parseHostPattern(host), subject, host));
  if (hosts.length === 0 && rule.cidrs.length === 0) {
    throw new PolicyError('POLICY_INVALID', `Cannot compile ${subject}: it names no hosts and no cidrs`);
  }
  if (!isDeny) {
    refuseAny(hosts, subject);
  }
  const paths = rule.paths.map((path) => must(parsePathPattern(path), subject, path));
  const query = queryOf(rule, subject);
  return Object.freeze({
    rule,
    isDeny,
    hosts,
    cidrs: rule.cidrs.map((cidr) => must(parseCidr(cidr), subject, cidr)),
    scheme: schemeOf(rule),
    ports: portsOf(rule),
    methods: isDeny ? denyMethods(rule.methods) : openMethods(rule.methods),
    paths: isDeny ? paths.flatMap(denyPatterns) : paths,
    query: isDeny ? query.map(foldQuery) : query,
    encodedSlash: rule.encodedSlash,
    decision: ruleDecision(rule, document),
    withCredentials: new Map(),
  });
}

/** A deny rule that does not ask for plain http covers both: the default must not leave the cleartext door open. */
function schemeOf(rule: Rule): 'https' | 'http' | null {
  return rule.effect === 'deny' && !(rule.protocol === 'http' && rule.scheme === 'http') ? null : rule.scheme;
}

/** A deny rule without ports covers every port: an allow rule for 8443 must not slip past it. */
function portsOf(rule: Rule): readonly number[] | null {
  if (rule.ports.length > 0) {
    return rule.ports;
  }
  if (rule.effect === 'deny') {
    return null;
  }
  return rule.scheme === 'https' ? [443] : [80];
}

function queryOf(rule: Rule, subject: string): QueryCondition[] {
  return Object.entries(rule.query).map(([key, glob]) => ({ key, value: must(parseQueryGlob(glob), subject, glob) }));
}

function compileBinding(credential: CompiledCredential): CompiledBinding {
  const { name, bind, allowCleartext } = credential.spec;
  const subject = `credential ${name}`;
  const hosts = bind.hosts.map((host) => must(parseHostPattern(host), subject, host));
  refuseAny(hosts, subject);
  const route = {
    isDeny: false,
    methods: openMethods(bind.methods),
    paths: bind.paths.map((path): PathPattern => must(parsePathPattern(path), subject, path)),
    query: [],
    // Whether an encoded slash passes at all is the rule's say; both forms of the path must be bound.
    encodedSlash: true,
  };
  return Object.freeze({
    ...route,
    credential,
    alone: Object.freeze([credential]),
    hosts,
    scheme: allowCleartext ? null : 'https',
    ports: bind.ports.length > 0 ? bind.ports : allowCleartext ? [443, 80] : [443],
    // Ports say nothing here: the same service is 443 with TLS and 80 without.
    cleartext: allowCleartext ? null : Object.freeze({ ...route, scheme: 'http', ports: null }),
  });
}

function refuseAny(hosts: readonly HostPattern[], subject: string): void {
  if (hosts.some((host) => host.kind === 'any')) {
    throw new PolicyError('POLICY_INVALID', `Cannot compile ${subject}: ** is for deny rules only`);
  }
}

function must<T>(result: Canonical<T>, subject: string, text: string): T {
  if (!result.ok) {
    throw new PolicyError('POLICY_INVALID', `Cannot compile ${subject}: ${JSON.stringify(text)}: ${result.reason}`);
  }
  return result.value;
}

/** What collects under one host pattern or block before its rule sets are built. */
interface Draft {
  readonly rules: CompiledRule[];
  readonly bindings: CompiledBinding[];
}

function indexOf(
  document: PolicyDocument,
  rules: readonly CompiledRule[],
  bindings: readonly CompiledBinding[],
): PolicyIndex {
  const exact = new Map<string, Draft>();
  const below = new Map<string, Draft>();
  const any = new Map<string, Draft>();
  const cidrs = new Map<string, { readonly cidr: Cidr; readonly draft: Draft }>();
  const draftOf = (host: HostPattern): Draft =>
    host.kind === 'any' ? at(any, '') : host.kind === 'exact' ? at(exact, host.name) : at(below, host.suffix);
  for (const rule of rules) {
    for (const host of rule.hosts) {
      addOnce(draftOf(host).rules, rule);
    }
    for (const cidr of rule.cidrs) {
      const key = formatCidr(cidr);
      const entry = cidrs.get(key) ?? { cidr, draft: { rules: [], bindings: [] } };
      cidrs.set(key, entry);
      addOnce(entry.draft.rules, rule);
    }
  }
  for (const binding of bindings) {
    for (const host of binding.hosts) {
      addOnce(draftOf(host).bindings, binding);
    }
  }
  const anyDraft = any.get('');
  return Object.freeze({
    allowPrivate: document.allowPrivate.map((cidr) => must(parseCidr(cidr), 'allowPrivate', cidr)),
    exact: bucketsOf(exact),
    below: bucketsOf(below),
    belowDepths: [...below.keys()].reduce((depths, suffix) => depths | depthBit(suffix.split('.').length), 0),
    any: anyDraft === undefined ? null : bucketOf(anyDraft),
    cidrs: cidrIndexOf([...cidrs.values()]),
    rules,
    bindings,
    connectAllowed: connectAllowed(document),
  });
}

function at(drafts: Map<string, Draft>, key: string): Draft {
  const draft = drafts.get(key) ?? { rules: [], bindings: [] };
  drafts.set(key, draft);
  return draft;
}

function addOnce<T>(list: T[], item: T): void {
  if (list[list.length - 1] !== item) {
    list.push(item);
  }
}

function bucketsOf(drafts: ReadonlyMap<string, Draft>): ReadonlyMap<string, Bucket> {
  return new Map([...drafts].map(([key, draft]) => [key, bucketOf(draft)]));
}

function bucketOf({ rules, bindings }: Draft): Bucket {
  const withEffect = (effect: Rule['effect']): CompiledRule[] => rules.filter(({ rule }) => rule.effect === effect);
  // TCP rules open nothing to a request that is judged as HTTP; their deny rules hold for it.
  const ask = withEffect('ask').filter(({ rule }) => rule.protocol === 'http');
  const allow = withEffect('allow').filter(({ rule }) => rule.protocol === 'http');
  return Object.freeze({
    deny: ruleSetOf(withEffect('deny')),
    ask: ruleSetOf(ask),
    allow: ruleSetOf(allow),
    examples: examplesOf(allow),
    bindings,
  });
}

function cidrIndexOf(entries: readonly { readonly cidr: Cidr; readonly draft: Draft }[]): CidrIndex {
  const v4 = new Map<number, Map<number, Bucket>>();
  const v6 = new Map<number, Map<string, Bucket>>();
  for (const { cidr, draft } of entries) {
    const bucket = bucketOf(draft);
    const { base, prefix } = cidr;
    if (base.family === 4) {
      group(v4, prefix).set(base.value, bucket);
    } else {
      group(v6, prefix).set(networkKey(base), bucket);
    }
  }
  return { v4: longestFirst(v4), v6: longestFirst(v6) };
}

function group<K, V>(map: Map<number, Map<K, V>>, prefix: number): Map<K, V> {
  const networks = map.get(prefix) ?? new Map<K, V>();
  map.set(prefix, networks);
  return networks;
}

function longestFirst<K, V>(
  map: ReadonlyMap<number, ReadonlyMap<K, V>>,
): { prefix: number; networks: ReadonlyMap<K, V> }[] {
  return [...map].map(([prefix, networks]) => ({ prefix, networks })).sort((one, other) => other.prefix - one.prefix);
}
