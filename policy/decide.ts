/** The verdict on one request: never-list > deny > ask > allow > default deny, whatever the order of the rules. */
import type { Bucket, CompiledBinding, CompiledPolicy, CompiledRule } from './compiled.ts';
import { findBuckets } from './destination.ts';
import { isNeverName, judgeAddress } from './never-list.ts';
import { isInPlay, mismatch, Question } from './question.ts';
import {
  allowWith,
  cleartextCredential,
  connectDenied,
  defaultDenied,
  doubleEncoding,
  encodedSlash,
  neverName,
  noPolicy,
  refusedAddress,
  ruleFailed,
} from './refusals.ts';
import { findRule } from './rule-set.ts';
import type { CompiledCredential, Decision, Destination, HttpFacts } from './types.ts';

/**
 * Judges a request. Total: it never throws, and what fails while deciding denies with `rule_failed`. It knows the
 * destination by name only; the address that is dialled is `judgeAddress`'s business. A missing policy denies.
 */
export function decide(policy: CompiledPolicy | null, facts: HttpFacts): Decision {
  if (policy === null) {
    return noPolicy;
  }
  try {
    return refuseNever(policy, facts.destination) ?? judge(policy, facts);
  } catch {
    // Facts that no canonical function made, or a fault of ours: either way nothing was decided, so nothing is allowed.
    return ruleFailed;
  }
}

/**
 * Judges what a CONNECT tells: whether any request to this host and port could be allowed or asked for. Refused when a deny
 * rule covers all of them. `rule` of an allow decision is null, because each request inside is judged by itself.
 */
export function decideConnect(policy: CompiledPolicy | null, destination: Destination, port: number): Decision {
  if (policy === null) {
    return noPolicy;
  }
  try {
    return refuseNever(policy, destination) ?? judgeConnect(policy, destination, port);
  } catch {
    // See decide.
    return ruleFailed;
  }
}

/** One for all decisions: `decide` is synchronous and calls nothing that could come back to it. */
const shared = new Question();

function refuseNever(policy: CompiledPolicy, destination: Destination): Decision | null {
  if (destination.kind === 'name') {
    return isNeverName(destination.name) ? neverName(destination.name) : null;
  }
  const verdict = judgeAddress(policy, destination.address, noOwn);
  return verdict.code === 'allowed' ? null : refusedAddress(verdict.code, verdict.reason);
}

const noOwn: readonly string[] = Object.freeze([]);

function judge(policy: CompiledPolicy, facts: HttpFacts): Decision {
  const question = shared;
  question.ask(facts);
  if (!findBuckets(policy.index, facts.destination, question)) {
    return ruleFailed;
  }
  const deny = findDeny(question);
  if (deny !== null) {
    return deny.decision;
  }
  if (facts.target.encodedPercent && isPercentInPlay(question)) {
    return doubleEncoding(policy, facts);
  }
  const open = findOpen(question, 'ask') ?? findOpen(question, 'allow');
  if (open !== null) {
    const shut = facts.scheme === 'http' ? findCleartext(question) : null;
    if (shut !== null) {
      return cleartextCredential(policy, facts, shut);
    }
    return open.rule.effect === 'ask' ? open.decision : allowWith(open, boundCredentials(question));
  }
  return facts.target.encodedSlash && isSlashTheOnlyFault(question)
    ? encodedSlash(policy, facts)
    : defaultDenied(policy, question);
}

function bucketAt(question: Question, index: number): Bucket {
  const bucket = question.buckets[index];
  if (bucket === undefined) {
    throw new RangeError(`Cannot read bucket ${index}: there are ${question.bucketCount}`);
  }
  return bucket;
}

function findDeny(question: Question): CompiledRule | null {
  for (let index = 0; index < question.bucketCount; index += 1) {
    const found = findRule(bucketAt(question, index).deny, question);
    if (found !== null) {
      return found;
    }
  }
  return null;
}

function findOpen(question: Question, effect: 'ask' | 'allow'): CompiledRule | null {
  for (let index = 0; index < question.openCount; index += 1) {
    const found = findRule(bucketAt(question, index)[effect], question);
    if (found !== null) {
      return found;
    }
  }
  return null;
}

function openBuckets(question: Question): readonly Bucket[] {
  return question.buckets.slice(0, question.openCount);
}

/**
 * A second decoding further on would make another path of `%252e`, so `%25` is refused where paths decide anything: a rule
 * with paths or a credential would concern this request. Without any rule that may open it, default deny says it better.
 */
function isPercentInPlay(question: Question): boolean {
  const buckets = openBuckets(question);
  const opening = buckets.flatMap((bucket) => [...bucket.ask.rules, ...bucket.allow.rules]);
  if (!opening.some((rule) => isInPlay(rule, question))) {
    return false;
  }
  const denying = question.buckets.slice(0, question.bucketCount).flatMap((bucket) => bucket.deny.rules);
  return (
    [...opening, ...denying].some((rule) => rule.paths.length > 0 && isInPlay(rule, question)) ||
    buckets.some((bucket) => bucket.bindings.some((binding) => isInPlay(binding, question)))
  );
}

function isSlashTheOnlyFault(question: Question): boolean {
  return openBuckets(question).some((bucket) =>
    [...bucket.ask.rules, ...bucket.allow.rules].some((rule) => mismatch(rule, question) === 'encoded_slash'),
  );
}

/**
 * The credential of a route that was asked for over plain http. Sent bare, the request would lose what its author gave it,
 * and an answer forged on the way could pass for the real one.
 */
function findCleartext(question: Question): CompiledCredential | null {
  for (let index = 0; index < question.openCount; index += 1) {
    for (const { cleartext, credential } of bucketAt(question, index).bindings) {
      if (cleartext !== null && mismatch(cleartext, question) === null) {
        return credential;
      }
    }
  }
  return null;
}

/** The credentials bound to exactly this request; no allocation for none or one. */
function boundCredentials(question: Question): readonly CompiledCredential[] {
  let first: CompiledBinding | null = null;
  let all: CompiledCredential[] | null = null;
  for (let index = 0; index < question.openCount; index += 1) {
    for (const binding of bucketAt(question, index).bindings) {
      if (binding === first || mismatch(binding, question) !== null) {
        continue;
      }
      if (first === null) {
        first = binding;
      } else {
        all ??= [first.credential];
        all.push(binding.credential);
      }
    }
  }
  if (all !== null) {
    return inOrder([...new Set(all)]);
  }
  return first === null ? none : first.alone;
}

const none: readonly CompiledCredential[] = Object.freeze([]);

/** Two credentials for one header are a load error; should they meet here, neither may win by chance. */
function inOrder(found: CompiledCredential[]): readonly CompiledCredential[] {
  if (new Set(found.map(({ slot }) => slot)).size < found.length) {
    throw new TypeError('Cannot choose a credential: two are bound to one request and header');
  }
  return found.sort((one, other) => one.id - other.id);
}

function judgeConnect(policy: CompiledPolicy, destination: Destination, port: number): Decision {
  const question = shared;
  question.ask(connectFacts);
  if (!findBuckets(policy.index, destination, question)) {
    return ruleFailed;
  }
  for (let index = 0; index < question.bucketCount; index += 1) {
    const rule = bucketAt(question, index).deny.rules.find((deny) => coversAll(deny, port));
    if (rule !== undefined) {
      return rule.decision;
    }
  }
  const mayOpen = openBuckets(question).some((bucket) =>
    [bucket.ask, bucket.allow].some((set) => set.rules.some((rule) => hasPort(rule, port))),
  );
  return mayOpen ? policy.index.connectAllowed : connectDenied(policy, destination, port, question);
}

const connectFacts: HttpFacts = {
  scheme: 'https',
  destination: { kind: 'name', name: '' },
  port: 0,
  method: 'CONNECT',
  target: { path: '/', query: null, encodedSlash: false, encodedPercent: false },
};

function hasPort(rule: CompiledRule, port: number): boolean {
  return rule.ports === null || rule.ports.includes(port);
}

function coversAll(deny: CompiledRule, port: number): boolean {
  const { rule } = deny;
  return (
    deny.scheme === null &&
    rule.methods.length === 0 &&
    rule.paths.length === 0 &&
    deny.query.length === 0 &&
    hasPort(deny, port)
  );
}
