/** What a policy may mean but probably should not: warnings, never a reason to refuse it. */
import { cidrContains, parseCidr } from '../address.ts';
import { isPrivateCidr } from '../address-class.ts';
import type { CredentialSpec, PolicyDocument, Rule } from '../types.ts';
import { bindMeetsRule, credentialsByHost, methodsIntersect, routeMeetsRule } from './bind-cover.ts';
import type { DocumentCheck } from './document-check.ts';
import { pathCovers } from './globs.ts';
import { type HostIndex, hostIndex } from './host-index.ts';
import type { ProblemCode } from './problem-codes.ts';

/** Comparing every allow rule with every deny rule is skipped past this product; such policies are generated. */
const MAX_SHADOW_PAIRS = 1_000_000;

/** Adds warnings. `tested`: names of the rules that won some test of the document. */
export function lint(document: PolicyDocument, tested: ReadonlySet<string>, check: DocumentCheck): void {
  const denies = document.rules.filter((rule) => rule.effect === 'deny');
  const isComparable = denies.length * document.rules.length <= MAX_SHADOW_PAIRS;
  const deniesByHost = hostIndex(isComparable ? denies : [], ({ hosts }) => hosts);
  const credentials = credentialsByHost(document.credentials);
  for (const [index, rule] of document.rules.entries()) {
    if (rule.effect === 'allow') {
      const meeting = credentials.meeting(rule.hosts);
      lintCredentials(meeting, rule, index, check);
      lintCleartext(meeting, rule, index, check);
      lintNeverMatches(document, rule, index, check);
      lintShadowed(deniesByHost, rule, index, check);
    }
    if (document.tests.length > 0 && !tested.has(rule.name)) {
      warn(check, index, 'LINT_UNTESTED', `no test is decided by the rule \`${rule.name}\``, 'Add a test for it.');
    }
  }
  if (document.rules.length > 0 && document.tests.length === 0) {
    const message = 'the policy has no tests';
    const hint = 'Add `tests`: one request each rule decides, and one just beside it that is refused.';
    check.report([], { code: 'LINT_UNTESTED', message, hint, severity: 'warning' });
  }
}

function warn(check: DocumentCheck, index: number, code: ProblemCode, message: string, hint?: string): void {
  check.report(['rules', index], { code, message, hint, severity: 'warning' });
}

const writes = ['POST', 'PUT', 'PATCH', 'DELETE'];

function lintCredentials(meeting: readonly CredentialSpec[], rule: Rule, index: number, check: DocumentCheck): void {
  const credential = meeting.find((candidate) => bindMeetsRule(candidate, rule));
  if (credential === undefined) return;
  const where = `\`${rule.name}\`, which gets the credential \`${credential.name}\`,`;
  if (rule.methods.length === 0) {
    warn(check, index, 'LINT_ANY_METHOD', `${where} allows any method`, 'Name the methods.');
  }
  if (rule.paths.length === 0) {
    warn(check, index, 'LINT_ANY_PATH', `${where} allows any path`, 'Name the paths.');
  }
  const canWrite = methodsIntersect(writes, rule.methods) && methodsIntersect(writes, credential.bind.methods);
  if (canWrite) {
    const hint = 'If it only reads, say `methods: [read]` in the rule and in `bind`.';
    warn(check, index, 'LINT_WRITE_WITH_CREDENTIAL', `${where} allows writing`, hint);
  }
}

function lintCleartext(meeting: readonly CredentialSpec[], rule: Rule, index: number, check: DocumentCheck): void {
  if (rule.scheme !== 'http') return;
  const shut = meeting.find((one) => !one.allowCleartext && routeMeetsRule(one, rule));
  if (shut === undefined) return;
  const message = `\`${rule.name}\` is plain http: what it shares with the binding of \`${shut.name}\` is refused`;
  const hint = 'Keep their paths or methods apart, or say `allowCleartext: true` in the credential.';
  warn(check, index, 'LINT_CLEARTEXT', message, hint);
}

function lintNeverMatches(document: PolicyDocument, rule: Rule, index: number, check: DocumentCheck): void {
  const needsSlash = rule.paths.length > 0 && rule.paths.every((path) => path.includes('%2F'));
  if (needsSlash && !rule.encodedSlash) {
    const hint = 'Say `encodedSlash: true`.';
    warn(check, index, 'LINT_NEVER_MATCHES', `\`${rule.name}\` never matches: paths with %2F are refused`, hint);
  }
  const shut = rule.cidrs.find((cidr) => isShutPrivate(cidr, document.allowPrivate));
  if (shut !== undefined) {
    const hint = `Add ${shut} to \`allowPrivate\`, or remove it here.`;
    warn(
      check,
      index,
      'LINT_NEVER_MATCHES',
      `${shut} of \`${rule.name}\` is private and no \`allowPrivate\` opens it`,
      hint,
    );
  }
}

function isShutPrivate(text: string, opened: readonly string[]): boolean {
  const cidr = parseCidr(text);
  if (!cidr.ok || !isPrivateCidr(cidr.value)) return false;
  return !opened.some((open) => {
    const block = parseCidr(open);
    // Either may be the wider one: a part that is open is enough to match something.
    return block.ok && (cidrContains(block.value, cidr.value.base) || cidrContains(cidr.value, block.value.base));
  });
}

function lintShadowed(denies: HostIndex<Rule>, rule: Rule, index: number, check: DocumentCheck): void {
  const winner = denies.covering(rule.hosts).find((deny) => shadows(deny, rule));
  if (winner === undefined) return;
  const message = `\`${rule.name}\` never matches: the deny rule \`${winner.name}\` takes all of it`;
  warn(check, index, 'LINT_SHADOWED', message, 'Remove one of the two.');
}

/** Whether `deny`, which covers the rule's hosts, takes all of it. Errs to false. */
function shadows(deny: Rule, rule: Rule): boolean {
  if (Object.keys(deny.query).length > 0 || deny.ports.length > 0) return false;
  if (deny.scheme === 'http' && rule.scheme === 'https') return false;
  if (rule.cidrs.length > 0 && !deny.hosts.includes('**')) return false;
  const hasMethods =
    deny.methods.length === 0 ||
    deny.methods.includes('*') ||
    (rule.methods.length > 0 && rule.methods.every((method) => deny.methods.includes(method)));
  if (!hasMethods) return false;
  if (deny.paths.length === 0) return true;
  return rule.paths.length > 0 && rule.paths.every((path) => deny.paths.some((outer) => pathCovers(outer, path)));
}
