/** Holds the documents to the code: every code has its row, every link its file, every guarantee its test. */
import { existsSync, readdirSync } from 'node:fs';
import { join, posix } from 'node:path';
import test from 'ava';
import { gatewayErrorCodes } from '../gateway/errors.ts';
import { policyErrorCodes } from '../policy/errors.ts';
import { vaultErrorCodes } from '../vault/errors.ts';
import {
  filesBelow,
  literalArguments,
  repositoryRoot,
  repositoryText,
  sourceFiles,
  stringLiterals,
  unionMembers,
} from './kit/source-tree.ts';

/** A link from a document to a test, with the quoted part of a title that follows it. */
interface TestLink {
  readonly file: string;
  readonly title: string | null;
}

/** Beside what a folder throws, problems of documents are values with codes of their own. */
const stableCodes: Readonly<Record<string, { readonly thrown: readonly string[]; readonly pattern: RegExp }>> = {
  policy: { thrown: policyErrorCodes, pattern: /^POLICY_[A-Z0-9_]+$/ },
  vault: { thrown: vaultErrorCodes, pattern: /^VAULT_[A-Z0-9_]+$/ },
  gateway: { thrown: gatewayErrorCodes, pattern: /^(GATEWAY|CONFIG)_[A-Z0-9_]+$/ },
};

for (const [folder, { thrown, pattern }] of Object.entries(stableCodes)) {
  test(`${folder}/README.md has a row for each of its codes and for no other`, (t) => {
    const used = sourceFiles([folder]).flatMap((file) => stringLiterals(file).filter((text) => pattern.test(text)));
    const documented = rowCodes(repositoryText(`${folder}/README.md`)).filter((code) => pattern.test(code));
    t.deepEqual(documented.toSorted(), [...new Set([...thrown, ...used])].sort());
  });
}

test('gateway/README.md has a row for each code of a refusal and for no other', (t) => {
  const used = refusalCodes('gateway/egress', ['deny', 'fault', 'fail', '#fail']);
  const documented = rowCodes(section(repositoryText('gateway/README.md'), 'Refusals'));
  t.deepEqual(documented.toSorted(), used);
});

test('policy/README.md names each code of a decision and of a name, address or path without canonical form', (t) => {
  const text = repositoryText('policy/README.md');
  const decisions = sourceFiles(['policy']).find(({ path }) => path === 'policy/types.ts');
  const used = [...refusalCodes('policy', ['failure']), ...unionMembers(decisions, 'DecisionCode')];
  t.deepEqual(
    used.filter((code) => !text.includes(`\`${code}\``)),
    [],
  );
});

test('every dependency has a line in ARCHITECTURE.md that names a file which uses it', (t) => {
  const rows = dependencyRows();
  t.deepEqual([...rows.keys()].sort(), dependencies().toSorted());
  const sources = new Map(sourceFiles(['policy', 'vault', 'gateway', 'test']).map((file) => [file.path, file]));
  for (const [name, path] of rows) {
    const source = sources.get(path);
    const isUsed =
      source === undefined ? namesTool(path, name) : source.imports.some((one) => isFrom(one.specifier, name));
    t.true(isUsed, `${name} is not used by ${path}`);
  }
});

for (const document of documents()) {
  test(`${document} links only to files that exist`, (t) => {
    const wrong = links(document).filter((target) => !existsSync(join(repositoryRoot, target)));
    t.deepEqual(wrong, []);
  });

  test(`${document} quotes only titles that its tests have`, (t) => {
    const wrong = testLinks(repositoryText(document), document).filter((link) => !hasTitle(link));
    t.deepEqual(wrong, []);
  });
}

test('every guarantee and non-guarantee of README.md names its test', (t) => {
  const sections = ['What it guarantees', 'What it does not'].map((heading) =>
    section(repositoryText('README.md'), heading),
  );
  for (const text of sections) {
    const rows = text.split('\n').filter((line) => /^(\| (?!-|Claim)|- )/.test(line));
    t.true(rows.length > 0);
    t.deepEqual(
      rows.filter((row) => !testLinks(row, 'README.md').some((link) => link.title !== null)),
      [],
    );
  }
});

/** Codes of table rows that begin with one: "| `CODE` | …". */
function rowCodes(text: string): readonly string[] {
  return [...text.matchAll(/^\| `([A-Za-z0-9_]+)` +\|/gm)].map(([, code]) => code ?? '');
}

/** Codes are literals in calls of the functions that make a refusal; reasons beside them have spaces or capitals. */
function refusalCodes(folder: string, makers: readonly string[]): readonly string[] {
  const literals = sourceFiles([folder]).flatMap((file) => literalArguments(file, makers));
  return [...new Set(literals.filter((text) => /^[a-z][a-z0-9_]*$/.test(text)))].sort();
}

/** Package → file, from rows "| `package` | what | why not ourselves | `file` |". */
function dependencyRows(): ReadonlyMap<string, string> {
  const rows = section(repositoryText('.github/ARCHITECTURE.md'), 'Packages').matchAll(
    /^\| `([^`]+)` +\|.*\| `([^`]+)` +\|$/gm,
  );
  return new Map([...rows].map(([, name, path]) => [name ?? '', path ?? '']));
}

function dependencies(): readonly string[] {
  const manifest: Record<string, unknown> = Object.fromEntries(
    Object.entries(JSON.parse(repositoryText('package.json'))),
  );
  return ['dependencies', 'devDependencies'].flatMap((key) => Object.keys(manifest[key] ?? {}));
}

/** A tool that no module imports is named by the file that runs or configures it. */
function namesTool(path: string, name: string): boolean {
  const short = name.split('/').at(-1) ?? name;
  return existsSync(join(repositoryRoot, path)) && repositoryText(path).includes(short);
}

function isFrom(specifier: string, name: string): boolean {
  return specifier === name || specifier.startsWith(`${name}/`);
}

function documents(): readonly string[] {
  const top = readdirSync(repositoryRoot).filter((name) => name.endsWith('.md'));
  return [...top, ...['.github', 'policy', 'vault', 'gateway', 'test'].flatMap((folder) => filesBelow(folder, '.md'))];
}

/** Targets of relative links as paths from the root. */
function links(document: string): readonly string[] {
  return [...repositoryText(document).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target]) => (target ?? '').replace(/#.*$/, ''))
    .filter((target) => target !== '' && !/^[a-z]+:/.test(target))
    .map((target) => posix.join(posix.dirname(document), target));
}

function testLinks(text: string, document: string): readonly TestLink[] {
  return [...text.matchAll(/\]\(([^)\s]+\.test\.ts)\)(?: “([^”]+)”)?/g)].map(([, target, title]) => ({
    file: posix.join(posix.dirname(document), target ?? ''),
    title: title ?? null,
  }));
}

function hasTitle(link: TestLink): boolean {
  if (link.title === null) return true;
  return existsSync(join(repositoryRoot, link.file)) && repositoryText(link.file).includes(link.title);
}

/** The text below `## heading` up to the next heading of that level. */
function section(text: string, heading: string): string {
  return text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
}
