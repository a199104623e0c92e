/** The fields that rules and bindings share, brought to canonical text: hosts, methods, paths. */
import { getPublicSuffix } from 'tldts';
import { formatHostPattern, parseHostPattern } from '../host-pattern.ts';
import { isNeverName } from '../never-list.ts';
import { parsePathPattern } from '../path-pattern.ts';
import { type DocumentCheck, readAll } from './document-check.ts';
import { expandMethods } from './expand-methods.ts';
import type { DocumentPath } from './schema-problems.ts';

export interface FieldContext {
  readonly check: DocumentCheck;
  /** Of the rule or binding. */
  readonly path: DocumentPath;
  readonly effect: 'allow' | 'deny';
  readonly unsafeWide: boolean;
  /** What the author may add to get a wide pattern through; bindings never may. */
  readonly mayBeWide: boolean;
}

/** Canonical host patterns; null when one was reported. */
export function readHosts(written: readonly string[] | undefined, context: FieldContext): readonly string[] | null {
  const hosts = readAll(written, (host, index) => readHost(host, [...context.path, 'hosts', index], context));
  return hosts === null ? null : withoutRepeats(hosts, 'hosts', context);
}

/** Canonical path globs; null when one was reported. */
export function readPaths(written: readonly string[] | undefined, context: FieldContext): readonly string[] | null {
  const paths = readAll(written, (glob, index) => {
    const pattern = parsePathPattern(glob);
    if (pattern.ok) return pattern.value.text;
    context.check.report([...context.path, 'paths', index], { code: 'PATH', message: lowerFirst(pattern.reason) });
    return null;
  });
  return paths === null ? null : withoutRepeats(paths, 'paths', context);
}

/** Upper-case methods, presets expanded; null when one was reported. */
export function readMethods(written: readonly string[] | undefined, context: FieldContext): readonly string[] | null {
  if (written === undefined) return [];
  const methods = expandMethods(written);
  if (methods.ok) return methods.methods;
  const { index, message, hint } = methods;
  context.check.report([...context.path, 'methods', index], { code: 'METHOD', message, hint });
  return null;
}

/** Sentences of the canonical parsers, as they continue after `error CODE: `. */
export function lowerFirst(reason: string): string {
  const sentence = reason.endsWith('.') ? reason.slice(0, -1) : reason;
  return /^[A-Z][a-z ]/.test(sentence) ? `${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}` : sentence;
}

function withoutRepeats(values: readonly string[], field: string, context: FieldContext): readonly string[] {
  const seen = new Set<string>();
  for (const [index, value] of values.entries()) {
    if (!seen.has(value)) {
      seen.add(value);
      continue;
    }
    const message = `this is \`${value}\` again, written differently`;
    context.check.report([...context.path, field, index], { code: 'LINT_REPEATED', message, severity: 'warning' });
  }
  return [...seen];
}

function readHost(written: string, path: DocumentPath, context: FieldContext): string | null {
  if (written === '**' && context.effect === 'allow') {
    const hint = 'Name the hosts, or `*.example.com` for all below one.';
    context.check.report(path, { code: 'WIDE_HOST', message: '`**` is for deny rules only', hint });
    return null;
  }
  if (isShapedWide(written)) return refuseShape(path, context);
  const pattern = parseHostPattern(written);
  if (!pattern.ok) {
    context.check.report(path, { code: 'HOST', message: lowerFirst(pattern.reason), hint: hostHint(written) });
    return null;
  }
  const name = pattern.value.kind === 'below' ? pattern.value.suffix : formatHostPattern(pattern.value);
  if (context.effect === 'allow' && isNeverName(name)) {
    const message = `\`${name}\` is on the built-in never-list, which no rule opens`;
    context.check.report(path, { code: 'NEVER_LIST', message, hint: 'Remove it.' });
    return null;
  }
  if (pattern.value.kind === 'below' && !acceptSuffix(name, path, context)) return null;
  return formatHostPattern(pattern.value);
}

/** `*`, `*.` and a `*` anywhere but as the whole first label. */
function isShapedWide(written: string): boolean {
  return written !== '**' && (written === '*' || written === '*.' || written.replace(/^\*\./, '').includes('*'));
}

function refuseShape(path: DocumentPath, context: FieldContext): null {
  if (context.unsafeWide) {
    const message = 'a `*` alone or inside a name is not supported by this version, even with `unsafeWide`';
    context.check.report(path, { code: 'NOT_YET', message, hint: 'List the names, or use `*.example.com`.' });
    return null;
  }
  const message = 'a wildcard stands only for whole labels in front of a name: `*.example.com`';
  context.check.report(path, { code: 'WIDE_HOST', message, hint: 'Name the hosts.' });
  return null;
}

/** Whoever registers a name below a public suffix would be let in (publicsuffix.org, private section included). */
function acceptSuffix(suffix: string, path: DocumentPath, context: FieldContext): boolean {
  if (!isPublicSuffix(suffix) || context.effect === 'deny') return true;
  if (context.unsafeWide) {
    const message = `\`*.${suffix}\` takes every name anybody registers below the public suffix \`${suffix}\``;
    context.check.report(path, { code: 'LINT_PUBLIC_SUFFIX', message, severity: 'warning' });
    return true;
  }
  const message = suffix.includes('.')
    ? `\`${suffix}\` is a public suffix: anybody may own a name below it`
    : `\`${suffix}\` is a whole top-level domain`;
  const hint = context.mayBeWide ? 'Name the hosts, or say `unsafeWide: true` if you mean it.' : 'Name the hosts.';
  context.check.report(path, { code: 'WIDE_HOST', message, hint });
  return false;
}

function isPublicSuffix(suffix: string): boolean {
  const options = { allowPrivateDomains: true, extractHostname: false, validateHostname: false };
  // The second form finds wildcard entries of the list: every name below `ck` or `compute.amazonaws.com` is a suffix itself.
  return [suffix, `x.${suffix}`].some((name) => getPublicSuffix(name, options) === name);
}

function hostHint(written: string): string | undefined {
  if (written.includes('://')) return 'Write the name only; scheme, port and path have their own keys.';
  if (/:[0-9]+$/.test(written)) return 'Write the name only, the port goes to `ports`.';
  if (written.includes('/')) return 'Write the name only; blocks of addresses go to `cidrs`, paths to `paths`.';
  return undefined;
}
