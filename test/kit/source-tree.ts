/** The repository's own files, read for the tests that hold it to its rules. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/** One `import`, `export … from` or `import(…)` of a file. */
export interface Import {
  /** As written. */
  readonly specifier: string;
  /** For our own files: path from the root, e.g. `policy/index.ts`. Null for packages and `node:`. */
  readonly file: string | null;
  /** Erased by the compiler. */
  readonly typeOnly: boolean;
}

export interface SourceFile {
  /** From the root, with `/`. */
  readonly path: string;
  readonly text: string;
  readonly lines: number;
  readonly imports: readonly Import[];
  readonly syntax: ts.SourceFile;
}

/** Absolute path of the checkout; this file runs from `dist/test/kit/`. */
export const repositoryRoot = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..');

/** Every `.ts` file below the given top-level folders, sorted by path. */
export function sourceFiles(folders: readonly string[]): readonly SourceFile[] {
  return folders.flatMap((folder) => filesBelow(folder, '.ts')).map(readSource);
}

/** Paths from the root of all files below `folder` that end in `ending`, sorted. */
export function filesBelow(folder: string, ending: string): readonly string[] {
  return readdirSync(join(repositoryRoot, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => posix.join(folder, relativeTo(folder, entry.parentPath), entry.name))
    .sort();
}

/** The text of one file of the repository. */
export function repositoryText(path: string): string {
  return readFileSync(join(repositoryRoot, path), 'utf8');
}

/** Calls `visit` for `node` and everything in it. */
export function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node);
  ts.forEachChild(node, (child) => walk(child, visit));
}

/** Every string literal of a file, templates without holes included. */
export function stringLiterals(file: SourceFile): readonly string[] {
  const found: string[] = [];
  walk(file.syntax, (node) => {
    if (ts.isStringLiteralLike(node)) found.push(node.text);
  });
  return found;
}

/** The string literals handed to calls of functions or methods with one of `names`. */
export function literalArguments(file: SourceFile, names: readonly string[]): readonly string[] {
  const found: string[] = [];
  walk(file.syntax, (node) => {
    if (!ts.isCallExpression(node)) return;
    const callee = ts.isPropertyAccessExpression(node.expression) ? node.expression.name : node.expression;
    if (!names.includes(callee.getText(file.syntax))) return;
    for (const argument of node.arguments) if (ts.isStringLiteralLike(argument)) found.push(argument.text);
  });
  return found;
}

/** The members of a union of string literals that `file` declares. */
export function unionMembers(file: SourceFile | undefined, name: string): readonly string[] {
  const found: string[] = [];
  if (file === undefined) return found;
  walk(file.syntax, (node) => {
    if (!ts.isTypeAliasDeclaration(node) || node.name.text !== name || !ts.isUnionTypeNode(node.type)) return;
    for (const member of node.type.types) {
      if (ts.isLiteralTypeNode(member) && ts.isStringLiteral(member.literal)) found.push(member.literal.text);
    }
  });
  return found;
}

/** Every identifier that stands for a value, property names excluded. */
export function freeIdentifiers(file: SourceFile): ReadonlySet<string> {
  const found = new Set<string>();
  walk(file.syntax, (node) => {
    if (ts.isIdentifier(node) && !isPropertyName(node)) found.add(node.text);
  });
  return found;
}

function relativeTo(folder: string, parent: string): string {
  return parent.slice(join(repositoryRoot, folder).length).replaceAll('\\', '/');
}

function readSource(path: string): SourceFile {
  const text = repositoryText(path);
  const syntax = ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true);
  return { path, text, lines: text.replace(/\n$/, '').split('\n').length, imports: importsOf(path, syntax), syntax };
}

function importsOf(path: string, syntax: ts.SourceFile): readonly Import[] {
  const found: Import[] = [];
  const add = (specifier: ts.Expression | undefined, typeOnly: boolean): void => {
    if (specifier === undefined || !ts.isStringLiteralLike(specifier)) return;
    found.push({ specifier: specifier.text, file: ownFile(path, specifier.text), typeOnly });
  };
  walk(syntax, (node) => {
    if (ts.isImportDeclaration(node)) add(node.moduleSpecifier, isTypeOnlyImport(node));
    else if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, node.isTypeOnly);
    else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
      add(node.arguments[0], false);
    else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal, true);
  });
  return found;
}

/** `import type …`, or braces in which each name is a `type`. */
function isTypeOnlyImport(node: ts.ImportDeclaration): boolean {
  const clause = node.importClause;
  if (clause === undefined) return false;
  if (clause.isTypeOnly) return true;
  const names = clause.namedBindings;
  if (clause.name !== undefined || names === undefined || !ts.isNamedImports(names)) return false;
  return names.elements.length > 0 && names.elements.every((element) => element.isTypeOnly);
}

function ownFile(path: string, specifier: string): string | null {
  return specifier.startsWith('.') ? posix.join(posix.dirname(path), specifier) : null;
}

function isPropertyName(node: ts.Identifier): boolean {
  const parent = node.parent;
  if (ts.isPropertyAccessExpression(parent)) return parent.name === node;
  if (ts.isPropertyAssignment(parent) || ts.isPropertySignature(parent) || ts.isPropertyDeclaration(parent)) {
    return parent.name === node;
  }
  return ts.isMethodDeclaration(parent) || ts.isTypeReferenceNode(parent) || ts.isQualifiedName(parent);
}
