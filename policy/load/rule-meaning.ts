/** From a rule that satisfies the schema to a {@link Rule}: every value canonical, every trap reported. */
import { parseQueryGlob } from '../query-pattern.ts';
import type { Rule } from '../types.ts';
import { readCidrs } from './cidrs.ts';
import type { DocumentCheck } from './document-check.ts';
import { type FieldContext, lowerFirst, readHosts, readMethods, readPaths } from './fields.ts';
import { ruleKeys } from './policy-schema.ts';
import type { RawRule } from './raw-document.ts';

/** Null when something was reported. */
export function readRule(raw: RawRule, index: number, check: DocumentCheck): Rule | null {
  const path = ['rules', index];
  const { effect } = raw;
  const unsafeWide = raw.unsafeWide ?? false;
  const context: FieldContext = { check, path, effect, unsafeWide, mayBeWide: true };
  const hasDestination = checkDestination(raw, context);
  const hosts = readHosts(raw.hosts, context);
  const cidrs = readCidrs(raw.cidrs, path, effect, check);
  const methods = readMethods(raw.methods, context);
  const paths = readPaths(raw.paths, context);
  const query = readQuery(raw.query, context);
  if (!hasDestination || hosts === null || cidrs === null || methods === null || paths === null || query === null) {
    return null;
  }
  return {
    name: raw.name,
    effect,
    ...(raw.reason === undefined ? {} : { reason: oneLine(raw.reason) }),
    protocol: 'http',
    scheme: raw.scheme ?? 'https',
    hosts,
    cidrs,
    methods,
    paths,
    query,
    ports: raw.ports ?? [],
    encodedSlash: raw.encodedSlash ?? false,
    unsafeWide,
    tls: 'intercept',
    line: check.line(path),
  };
}

/** Folded block texts end in a line break and may hold more; a reason is one line in a header, a log and a terminal. */
export function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

function checkDestination(raw: RawRule, { check, path }: FieldContext): boolean {
  if (raw.hosts !== undefined || raw.cidrs !== undefined) return true;
  // An unknown key was reported, and is most likely the missing one.
  if (Object.keys(raw).some((key) => !ruleKeys.has(key))) return false;
  check.report(path, {
    code: 'NO_DESTINATION',
    message: `the rule \`${raw.name}\` has neither \`hosts\` nor \`cidrs\``,
    hint: 'A missing list never means everything: name the hosts, or write hosts: ["**"] in a deny rule.',
  });
  return false;
}

function readQuery(
  raw: Readonly<Record<string, string>> | undefined,
  { check, path }: FieldContext,
): Readonly<Record<string, string>> | null {
  let isGood = true;
  for (const [key, glob] of Object.entries(raw ?? {})) {
    const pattern = parseQueryGlob(glob);
    if (!pattern.ok) check.report([...path, 'query', key], { code: 'QUERY', message: lowerFirst(pattern.reason) });
    const isKey = key !== '' && key.length <= 256 && !/[\u0000-\u001f\u007f*]/.test(key);
    if (!isKey) {
      const message = 'a query key is plain decoded text, without `*` or control characters';
      check.report([...path, 'query', key], { code: 'QUERY', message, atKey: true });
    }
    isGood &&= pattern.ok && isKey;
  }
  return isGood ? (raw ?? {}) : null;
}
