/** Decisions and their words: for people why, for the caller what to do. Query values never appear. */
import { MAX_DECISIONS_PER_RULE, MAX_HINT_EXAMPLES, MAX_METHOD_LENGTH, MAX_REASON_PATH_LENGTH } from './bounds.ts';
import type { CompiledPolicy, CompiledRule } from './compiled.ts';
import { isMethodToken } from './methods.ts';
import type { Question } from './question.ts';
import type {
  CompiledCredential,
  Decision,
  DecisionCode,
  Destination,
  HttpFacts,
  PolicyDocument,
  Rule,
} from './types.ts';

const noCredentials: readonly CompiledCredential[] = Object.freeze([]);

/** The decision of a rule when it wins; made once, at compile. */
export function ruleDecision(rule: Rule, document: PolicyDocument): Decision {
  const { verdict, code, words } = outcomes[rule.effect];
  return Object.freeze({
    verdict,
    code,
    rule: rule.name,
    reason: rule.reason ?? `Rule ${rule.name} of policy ${document.name} ${words}.`,
    hint: rule.effect === 'allow' ? '' : hintFor(rule, document),
    credentials: noCredentials,
  });
}

const outcomes = {
  allow: { verdict: 'allow', code: 'allowed', words: 'allows this' },
  deny: { verdict: 'deny', code: 'policy_denied', words: 'denies this' },
  ask: { verdict: 'ask', code: 'ask_required', words: 'asks a person before this is sent' },
} as const;

function hintFor(rule: Rule, document: PolicyDocument): string {
  if (rule.effect === 'ask') {
    return 'Send the request again and wait; a person has to approve it.';
  }
  return `Retrying will not help. ${ownerOf(document)} can change rule ${rule.name} (line ${rule.line}).`;
}

/** The answer to a CONNECT that some rule may allow; each request inside is judged by itself. */
export function connectAllowed(document: PolicyDocument): Decision {
  return Object.freeze({
    verdict: 'allow',
    code: 'allowed',
    rule: null,
    reason: `Policy ${document.name} may allow requests to this host and port; each is judged by itself.`,
    hint: '',
    credentials: noCredentials,
  });
}

/** The allow decision of a rule together with the credentials bound to the request, shared between equal requests. */
export function allowWith(rule: CompiledRule, credentials: readonly CompiledCredential[]): Decision {
  const [only] = credentials;
  if (only === undefined) {
    return rule.decision;
  }
  const key = credentials.length === 1 ? only.id : credentials.map(({ id }) => id).join(',');
  const known = rule.withCredentials.get(key);
  if (known !== undefined) {
    return known;
  }
  const decision = Object.freeze({ ...rule.decision, credentials: Object.freeze([...credentials]) });
  if (rule.withCredentials.size < MAX_DECISIONS_PER_RULE) {
    rule.withCredentials.set(key, decision);
  }
  return decision;
}

/** Anything that fails while deciding denies. */
export const ruleFailed: Decision = Object.freeze({
  verdict: 'deny',
  code: 'rule_failed',
  rule: null,
  reason: 'The policy could not be evaluated for this request, so it is refused.',
  hint: "Report this with the request id; it is a fault of the gateway or of the policy, not of the request's author.",
  credentials: noCredentials,
});

/** A missing policy denies. */
export const noPolicy: Decision = Object.freeze({
  verdict: 'deny',
  code: 'default_denied',
  rule: null,
  reason: 'No policy is loaded for this caller, so nothing is allowed.',
  hint: 'Ask the operator to load a policy and to name it for this caller.',
  credentials: noCredentials,
});

/** A refusal that no rule gave. Plain strings put together at once: cheaper than accessors, and they survive a spread. */
function refusal(code: DecisionCode, reason: string, hint: string): Decision {
  return { verdict: 'deny', code, rule: null, reason, hint, credentials: noCredentials };
}

export function neverName(name: string): Decision {
  return refusal(
    'never_list',
    `${name} is on the built-in never-list (loopback, cloud metadata, control plane), which no policy opens.`,
    'Nothing can allow this name. Credentials come from the gateway, not from an instance metadata service.',
  );
}

export function refusedAddress(code: 'never_list' | 'private_address', reason: string): Decision {
  return refusal(
    code,
    reason,
    code === 'private_address'
      ? 'Use a public destination, or ask the policy owner to list the block under allowPrivate and the address under cidrs.'
      : 'Nothing can allow this address; use the public name of the service.',
  );
}

/** `question` holds the buckets of the destination. */
export function defaultDenied(policy: CompiledPolicy, question: Question): Decision {
  const { facts } = question;
  return refusal(
    'default_denied',
    `No rule of policy ${policy.name} allows ${requestText(facts)}.`,
    allowedHint(policy, facts.destination, question),
  );
}

/** `question` holds the buckets of the destination. */
export function connectDenied(
  policy: CompiledPolicy,
  destination: Destination,
  port: number,
  question: Question,
): Decision {
  return refusal(
    'default_denied',
    `No rule of policy ${policy.name} allows any request to ${hostText(destination)}:${port}.`,
    allowedHint(policy, destination, question),
  );
}

export function encodedSlash(policy: CompiledPolicy, facts: HttpFacts): Decision {
  return refusal(
    'encoded_slash',
    `The path of ${requestText(facts)} holds %2F, and no rule of policy ${policy.name} takes it in both of its readings.`,
    'Send a plain slash, or ask the policy owner for encodedSlash: true on a rule whose paths match with %2F and with /.',
  );
}

export function doubleEncoding(policy: CompiledPolicy, facts: HttpFacts): Decision {
  return refusal(
    'double_encoding',
    `The path of ${requestText(facts)} holds %25, and policy ${policy.name} has path rules or a credential for it.`,
    'Send the path encoded once only; an encoded percent sign is refused where paths are judged.',
  );
}

export function cleartextCredential(policy: CompiledPolicy, facts: HttpFacts, { spec }: CompiledCredential): Decision {
  return refusal(
    'cleartext_credential',
    `Credential ${spec.name} is bound to ${requestText(facts)}, and it does not travel over plain http.`,
    `Use https. ${ownerOf(policy.document)} can narrow the binding, or say allowCleartext: true there (line ${spec.line}).`,
  );
}

/** What some rules of a bucket allow, at most MAX_HINT_EXAMPLES, for the hints of refusals. */
export function examplesOf(rules: readonly CompiledRule[]): readonly string[] {
  return rules.slice(0, MAX_HINT_EXAMPLES).flatMap(allowedTexts).slice(0, MAX_HINT_EXAMPLES);
}

/** Method, scheme, host, port and path of a request in one line; never its query. */
export function requestText(facts: HttpFacts): string {
  const method = isMethodToken(facts.method, MAX_METHOD_LENGTH) ? facts.method : '(odd method)';
  const { path } = facts.target;
  const shown = path.length > MAX_REASON_PATH_LENGTH ? `${path.slice(0, MAX_REASON_PATH_LENGTH)}…` : path;
  const isDefaultPort = facts.port === (facts.scheme === 'https' ? 443 : 80);
  return `${method} ${facts.scheme}://${hostText(facts.destination)}${isDefaultPort ? '' : `:${facts.port}`}${shown}`;
}

function hostText(destination: Destination): string {
  if (destination.kind === 'name') {
    return destination.name;
  }
  return destination.address.includes(':') ? `[${destination.address}]` : destination.address;
}

function allowedHint(policy: CompiledPolicy, destination: Destination, question: Question): string {
  const owner = ownerOf(policy.document);
  let shown = '';
  for (let index = 0; index < question.openCount; index += 1) {
    for (const example of question.buckets[index]?.examples ?? []) {
      shown = shown === '' ? example : `${shown}, ${example}`;
    }
  }
  if (shown !== '') {
    return `Allowed for this host: ${shown}. ${owner} can add to it.`;
  }
  const key = destination.kind === 'name' ? 'hosts' : 'cidrs';
  return `${owner} can add a rule with ${key}: [${hostText(destination)}]; nothing is allowed for this host yet.`;
}

function allowedTexts({ rule }: CompiledRule): string[] {
  const methods = rule.methods.length === 0 ? 'any method' : rule.methods.join('/');
  const scheme = rule.scheme === 'http' ? ' over http' : '';
  const ports = rule.ports.length === 0 ? '' : ` on port ${rule.ports.join('/')}`;
  const paths = rule.paths.length === 0 ? ['/**'] : rule.paths;
  return paths.map((path) => `${methods} ${path}${scheme}${ports}`);
}

function ownerOf(document: PolicyDocument): string {
  return document.owner === undefined
    ? `The owner of policy ${document.name}`
    : `${document.owner} (policy ${document.name})`;
}
