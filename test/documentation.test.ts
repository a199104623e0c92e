/** Holds the documents to the code: every code has its row, every link its file, every guarantee its test. */
import { existsSync, readdirSync } from 'node:fs';
import { join, posix } from 'node:path';
import test from 'ava';
import { configProblemCodes } from '../gateway/config/shape.ts';
import { gatewayErrorCodes } from '../gateway/errors.ts';
import { policyErrorCodes } from '../policy/errors.ts';
import { formatProblems, loadPolicy } from '../policy/index.ts';
import { vaultErrorCodes } from '../vault/errors.ts';
import {
  filesBelow,
  literalArguments,
  repositoryRoot,
  repositoryText,
  type SourceFile,
  sourceFiles,
  stringLiterals,
  unionMembers,
} from './kit/source-tree.ts';

/** A link from a document to a test, with the quoted part of a title that follows it. */
interface TestLink {
  readonly file: string;
  readonly title: string | null;
}

/** The codes of a folder: what it lists, and what its code spells (`used`, where problems are values made on the spot). */
interface StableCodes {
  readonly listed: readonly string[];
  readonly used: RegExp;
  /** Folders whose sources spell them. */
  readonly in: readonly string[];
}

const stableCodes: Readonly<Record<string, StableCodes>> = {
  policy: { listed: policyErrorCodes, used: /^POLICY_[A-Z0-9_]+$/, in: ['policy', 'gateway'] },
  vault: { listed: vaultErrorCodes, used: /^VAULT_[A-Z0-9_]+$/, in: ['vault'] },
  gateway: { listed: [...gatewayErrorCodes, ...configProblemCodes], used: /^GATEWAY_[A-Z0-9_]+$/, in: ['gateway'] },
};

for (const [folder, codes] of Object.entries(stableCodes)) {
  test(`the README files of ${folder}/ have a row for each of its codes and for no other`, (t) => {
    const spelled = sourceFiles(codes.in).flatMap((file) =>
      stringLiterals(file).filter((text) => codes.used.test(text)),
    );
    const rows = filesBelow(folder, 'README.md').flatMap((path) => rowCodes(repositoryText(path)));
    const documented = rows.filter((code) => /^[A-Z0-9]+_[A-Z0-9_]+$/.test(code));
    t.deepEqual(compare(documented, [...codes.listed, ...spelled]), AGREE);
  });
}

test('gateway/README.md has a row for each code of a refusal and for no other', (t) => {
  const decisions = unionMembers(sourceFile('policy/types.ts'), 'DecisionCode').filter((code) => code !== 'allowed');
  const used = [...spelledCodes('gateway/egress', ['deny', 'fault', 'fail', '#fail', '#abandon']), ...decisions];
  const documented = rowCodes(section(repositoryText('gateway/README.md'), 'Refusals'));
  t.deepEqual(compare(documented, used), AGREE);
});

test('policy/README.md names each code of a decision and of a name, address or path without canonical form', (t) => {
  const text = repositoryText('policy/README.md');
  const used = [...spelledCodes('policy', ['failure']), ...unionMembers(sourceFile('policy/types.ts'), 'DecisionCode')];
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

test('every policy shown in a document loads', (t) => {
  const shown = documents().flatMap((document) =>
    [...repositoryText(document).matchAll(/^```yaml\n(version: 1\n[\s\S]*?)^```/gm)].map(([, text]) => ({
      document,
      text: text ?? '',
    })),
  );
  t.true(shown.some(({ document }) => document === 'README.md'));
  for (const { document, text } of shown) {
    const result = loadPolicy(text, { file: document });
    t.true(result.ok, result.ok ? '' : formatProblems(result.problems));
  }
});

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

const AGREE = { undocumented: [], unknown: [] };

/** What one list has and the other has not, each once. */
function compare(documented: readonly string[], used: readonly string[]) {
  return {
    undocumented: [...new Set(used)].filter((code) => !documented.includes(code)).sort(),
    unknown: [...new Set(documented)].filter((code) => !used.includes(code)).sort(),
  };
}

/** Codes of table rows that begin with one: "| `CODE` | …". */
function rowCodes(text: string): readonly string[] {
  return [...text.matchAll(/^\| `([A-Za-z0-9_]+)` +\|/gm)].map(([, code]) => code ?? '');
}

const verdicts = ['allow', 'deny', 'error'];

/** Literals handed to `makers`, and any other that is written like a code; reasons have spaces. */
function spelledCodes(folder: string, makers: readonly string[]): readonly string[] {
  const files = sourceFiles([folder]);
  const made = files
    .flatMap((file) => literalArguments(file, makers))
    .filter((text) => /^[a-z][a-z0-9_]*$/.test(text) && !verdicts.includes(text));
  if (folder === 'policy') return made;
  return [...made, ...files.flatMap(stringLiterals).filter((text) => /^[a-z][a-z0-9]*(_[a-z0-9]+)+$/.test(text))];
}

function sourceFile(path: string): SourceFile | undefined {
  return sourceFiles([posix.dirname(path)]).find((file) => file.path === path);
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
