/** Checks between credentials and rules: a binding opens nothing by itself, and no request may get two answers. */
import { hasMethod, methodBit, openMethods } from '../methods.ts';
import type { CredentialBind, CredentialSpec, Rule, Scheme } from '../types.ts';
import type { DocumentCheck } from './document-check.ts';
import { pathCovers, pathsIntersect } from './globs.ts';
import { type HostIndex, hostIndex } from './host-index.ts';

/** Hosts × paths × methods × ports of one binding; a reviewable one has a few dozen. */
export const MAX_BIND_COMBINATIONS = 20_000;

/** Reports bindings that no allow rule covers, cleartext without permission, and pairs that are ambiguous. */
export function checkBindings(
  rules: readonly Rule[],
  credentials: readonly CredentialSpec[],
  check: DocumentCheck,
): void {
  if (credentials.length === 0) return;
  const allows = hostIndex(
    rules.filter((rule) => rule.effect === 'allow'),
    ({ hosts }) => hosts,
  );
  for (const [index, credential] of credentials.entries()) checkCover(allows, credential, index, check);
  const byHost = credentialsByHost(credentials);
  for (const [index, credential] of credentials.entries()) {
    // The credential meets itself, and ends the search: of a pair, the later one is reported.
    const earlier = byHost
      .meeting(credential.bind.hosts)
      .find((other) => other === credential || isAmbiguous(other, credential));
    if (earlier === undefined || earlier === credential) continue;
    check.report(['credentials', index], {
      code: 'AMBIGUOUS',
      message: `\`${credential.name}\` and \`${earlier.name}\` could both fill \`${slotOf(credential)}\` of one request`,
      hint: 'Make their hosts, methods or paths disjoint.',
    });
  }
}

/** The header a credential fills. */
export function slotOf(credential: CredentialSpec): string {
  return credential.inject.kind === 'header' ? credential.inject.header : 'authorization';
}

/** Credentials by the hosts they are bound to. */
export function credentialsByHost(credentials: readonly CredentialSpec[]): HostIndex<CredentialSpec> {
  return hostIndex(credentials, ({ bind }) => bind.hosts);
}

/** Whether a request can exist that both conditions take, if their hosts meet. Errs to true. */
export function bindMeetsRule(credential: CredentialSpec, rule: Rule): boolean {
  const isSchemeOpen = rule.scheme === 'https' || credential.allowCleartext;
  const ports = rule.ports.length === 0 ? [rule.scheme === 'https' ? 443 : 80] : rule.ports;
  return isSchemeOpen && routeMeetsRule(credential, rule) && portsOf(credential).some((port) => ports.includes(port));
}

/** The same for methods and paths alone. Errs to true. */
export function routeMeetsRule({ bind }: CredentialSpec, rule: Rule): boolean {
  return methodsIntersect(bind.methods, rule.methods) && pathListsIntersect(bind.paths, rule.paths);
}

/** Errs to true. */
export function methodsIntersect(one: readonly string[], other: readonly string[]): boolean {
  if (one.length === 0 && other.length === 0) return true;
  const [list, set] = one.length === 0 ? [other, one] : [one, other];
  if (list.includes('*')) return true;
  const open = openMethods(set);
  const withHead = list.includes('GET') ? [...list, 'HEAD'] : list;
  return withHead.some((method) => hasMethod(open, methodBit(method), method));
}

function checkCover(allows: HostIndex<Rule>, credential: CredentialSpec, index: number, check: DocumentCheck): void {
  const path = ['credentials', index, 'bind'];
  const { bind } = credential;
  const combinations = [bind.hosts, bind.paths, bind.methods, bind.ports].reduce(
    (size, { length }) => size * (length || 1),
    1,
  );
  if (combinations > MAX_BIND_COMBINATIONS) {
    const message = `the binding has ${combinations} combinations, more than ${MAX_BIND_COMBINATIONS}`;
    check.report(path, { code: 'TOO_LONG', message, hint: 'Use several credentials, or globs.' });
    return;
  }
  const gap = firstGap(allows, bind, credential.allowCleartext ? ['https', 'http'] : ['https']);
  if (gap === null) return;
  if (!credential.allowCleartext && firstGap(allows, bind, ['https', 'http']) === null) {
    check.report(path, {
      code: 'CLEARTEXT',
      message: `\`${credential.name}\` would travel over plain http`,
      hint: 'Use https, or say `allowCleartext: true` if the network in between is yours.',
    });
    return;
  }
  check.report(path, {
    code: 'NOT_COVERED',
    message: `\`${credential.name}\` is bound to ${gap}, which no single allow rule covers`,
    hint: 'Narrow `bind` (hosts, methods, paths, ports) to what the rules allow.',
  });
}

/** What of the binding no rule allows, in words; null when all of it is allowed. */
function firstGap(allows: HostIndex<Rule>, bind: CredentialBind, schemes: readonly Scheme[]): string | null {
  for (const host of bind.hosts) {
    const rules = allows.covering([host]).filter((rule) => schemes.includes(rule.scheme));
    for (const path of bind.paths.length === 0 ? ['/**'] : bind.paths) {
      const here = rules.filter(
        (rule) => rule.paths.length === 0 || rule.paths.some((outer) => pathCovers(outer, path)),
      );
      const gap = portGap(here, bind, schemes) ?? methodGap(here, bind, schemes);
      if (gap !== null) return `${gap} ${host}${path}`;
    }
  }
  return null;
}

function portGap(rules: readonly Rule[], bind: CredentialBind, schemes: readonly Scheme[]): string | null {
  if (rules.length === 0) return bind.methods[0] ?? 'any method of';
  if (bind.ports.length === 0) {
    const isOpen = schemes.some((scheme) => rules.some((rule) => takesPort(rule, scheme === 'https' ? 443 : 80)));
    return isOpen ? null : `port ${schemes.includes('http') ? '443 or 80' : '443'} of`;
  }
  const port = bind.ports.find((wanted) => !rules.some((rule) => takesPort(rule, wanted)));
  return port === undefined ? null : `port ${port} of`;
}

function methodGap(rules: readonly Rule[], bind: CredentialBind, schemes: readonly Scheme[]): string | null {
  const ports = bind.ports.length === 0 ? schemes.map((scheme) => (scheme === 'https' ? 443 : 80)) : bind.ports;
  for (const port of ports) {
    const here = rules.filter((rule) => takesPort(rule, port));
    // A default port that no rule opens was accepted above, because another one is.
    if (here.length === 0) continue;
    if (bind.methods.length === 0) {
      if (!here.some((rule) => rule.methods.length === 0 || rule.methods.includes('*'))) return 'any method of';
      continue;
    }
    const method = bind.methods.find((wanted) => !here.some((rule) => takesMethod(rule, wanted)));
    if (method !== undefined) return method;
  }
  return null;
}

function takesPort(rule: Rule, port: number): boolean {
  return rule.ports.length === 0 ? port === (rule.scheme === 'https' ? 443 : 80) : rule.ports.includes(port);
}

function takesMethod(rule: Rule, method: string): boolean {
  if (method === '*') return rule.methods.includes('*');
  return hasMethod(openMethods(rule.methods), methodBit(method), method);
}

/** For two whose hosts meet. */
function isAmbiguous(one: CredentialSpec, other: CredentialSpec): boolean {
  return (
    slotOf(one) === slotOf(other) &&
    methodsIntersect(one.bind.methods, other.bind.methods) &&
    pathListsIntersect(one.bind.paths, other.bind.paths) &&
    portsOf(one).some((port) => portsOf(other).includes(port))
  );
}

function portsOf({ bind, allowCleartext }: CredentialSpec): readonly number[] {
  if (bind.ports.length > 0) return bind.ports;
  return allowCleartext ? [443, 80] : [443];
}

function pathListsIntersect(one: readonly string[], other: readonly string[]): boolean {
  return one.length === 0 || other.length === 0 || anyPair(one, other, pathsIntersect);
}

function anyPair(one: readonly string[], other: readonly string[], test: (a: string, b: string) => boolean): boolean {
  return one.some((a) => other.some((b) => test(a, b)));
}
