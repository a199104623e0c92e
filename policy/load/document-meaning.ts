/** From a document that satisfies the schema to a {@link PolicyDocument}, or to everything that is wrong with its meaning. */
import type { PolicyDocument, PolicyTest } from '../types.ts';
import { checkBindings } from './bind-cover.ts';
import { readPrivateBlock } from './cidrs.ts';
import { readCredential } from './credential-meaning.ts';
import { didYouMean } from './did-you-mean.ts';
import { type DocumentCheck, readAll } from './document-check.ts';
import type { RawDocument, RawTest } from './raw-document.ts';
import { oneLine, readRule } from './rule-meaning.ts';
import type { DocumentPath } from './schema-problems.ts';

type Named = { readonly name: string };

/**
 * Null when something was reported. Parts for which `isUsable` is false were already reported and may have any shape; they
 * are passed over. Unless the document `isWhole`, checks between its parts would only guess.
 */
export function readDocument(
  raw: RawDocument,
  isUsable: (path: DocumentPath) => boolean,
  check: DocumentCheck,
  isWhole: boolean,
): PolicyDocument | null {
  const read = <Item, Value>(
    list: string,
    items: readonly Item[] | undefined,
    readItem: (item: Item, index: number, check: DocumentCheck) => Value | null,
  ): readonly Value[] | null => {
    if (!isUsable([list])) return null;
    return readAll(items, (item, index) => (isUsable([list, index]) ? readItem(item, index, check) : null));
  };
  const allowPrivate = read('allowPrivate', raw.allowPrivate, readPrivateBlock);
  const rules = read('rules', raw.rules, readRule);
  const credentials = read('credentials', raw.credentials, readCredential);
  const tests = read('tests', raw.tests, readTest);
  // Only now: a name of a part that is broken otherwise still counts, and one that is no text was reported.
  const ruleNames = checkNames('rules', isUsable(['rules']) ? raw.rules : undefined, check);
  const credentialNames = checkNames('credentials', isUsable(['credentials']) ? raw.credentials : undefined, check);
  const isNamed = checkReferences(isUsable(['tests']) ? raw.tests : undefined, ruleNames, credentialNames, check);
  if (allowPrivate === null || rules === null || credentials === null || tests === null) return null;
  if (isWhole) checkBindings(rules, credentials, check);
  if (!isNamed || !['name', 'description', 'owner'].every((key) => isUsable([key]))) return null;
  return {
    version: 1,
    name: raw.name,
    ...(raw.description === undefined ? {} : { description: raw.description.trim() }),
    ...(raw.owner === undefined ? {} : { owner: oneLine(raw.owner) }),
    mode: 'enforce',
    allowPrivate,
    rules,
    credentials,
    tests,
  };
}

/** Reports names that are there twice; the answer says which there are. */
function checkNames(list: string, items: readonly Named[] | undefined, check: DocumentCheck): ReadonlySet<string> {
  const names = new Set<string>();
  for (const [index, item] of (items ?? []).entries()) {
    const name = textField(item, 'name');
    if (name === null) continue;
    if (names.has(name)) {
      const message = `the name \`${name}\` is there twice in \`${list}\``;
      check.report([list, index, 'name'], {
        code: 'DUPLICATE_NAME',
        message,
        hint: 'Names land in audit: keep them unique.',
      });
    }
    names.add(name);
  }
  return names;
}

function checkReferences(
  tests: readonly RawTest[] | undefined,
  ruleNames: ReadonlySet<string>,
  credentialNames: ReadonlySet<string>,
  check: DocumentCheck,
): boolean {
  let isGood = true;
  for (const [index, test] of (tests ?? []).entries()) {
    for (const [key, names] of [['rule', ruleNames] as const, ['credential', credentialNames] as const]) {
      const name = textField(test, key);
      if (name === null || names.has(name)) continue;
      isGood = false;
      const near = didYouMean(name, names);
      const hint = near === null ? undefined : `Did you mean \`${near}\`?`;
      check.report(['tests', index, key], { code: 'UNKNOWN_NAME', message: `there is no ${key} \`${name}\``, hint });
    }
  }
  return isGood;
}

/** A part may be broken elsewhere, so nothing is taken for granted. */
function textField(item: unknown, key: string): string | null {
  if (typeof item !== 'object' || item === null) return null;
  const value: unknown = Reflect.get(item, key);
  return typeof value === 'string' ? value : null;
}

/** The schema made sure of `METHOD URL`; whether it is a request at all is found when the test runs. */
function readTest(raw: RawTest, index: number, check: DocumentCheck): PolicyTest {
  const space = raw.request.indexOf(' ');
  return {
    method: raw.request.slice(0, space),
    url: raw.request.slice(space + 1),
    expect: raw.expect,
    ...(raw.rule === undefined ? {} : { rule: raw.rule }),
    ...(raw.credential === undefined ? {} : { credential: raw.credential }),
    line: check.line(['tests', index]),
  };
}
