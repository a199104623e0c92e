/** A YAML document as a tree of plain values that know where they were written, free of everything YAML hides. */
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseDocument,
  type YAMLError,
} from 'yaml';
import { clip, type ProblemList, type Span } from './problem.ts';
import type { ProblemCode } from './problem-codes.ts';
import { lineOf } from './source-text.ts';
import { guardYaml, MAX_DEPTH } from './yaml-guard.ts';

/** One value with its place. */
export interface Located {
  readonly kind: 'map' | 'list' | 'scalar';
  readonly span: Span;
  /** Plain data: null, boolean, number, string, array, object without special keys. */
  readonly value: unknown;
  readonly entries: ReadonlyMap<string, { readonly key: Span; readonly node: Located }>;
  readonly items: readonly Located[];
}

/** Aliases can repeat a large list often; the expanded tree is bounded too. */
export const MAX_NODES = 250_000;

/**
 * Parses YAML 1.2 (core schema, so `no` and `12:30` stay text) and refuses what makes a document mean something else than
 * it shows: duplicate and non-text keys, merge keys, tags, directives, several documents, odd numbers, special object keys.
 * Null when there is nothing worth checking further; otherwise the tree, with problems already added to `problems`.
 */
export function strictTree(text: string, problems: ProblemList): Located | null {
  if (!guardYaml(text, problems)) return null;
  // Invariant: the guard bounded depth and size, so neither the parser nor `build` can exhaust the stack.
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    merge: false,
    uniqueKeys: false,
    prettyErrors: false,
    // Not `silent`: then a second document would be dropped without a word.
    logLevel: 'error',
  });
  const contentEnd = text.trimEnd().length;
  for (const error of document.errors) addSyntaxProblem(error, text, contentEnd, problems);
  if (document.errors.length > 0) return null;
  const builder: Builder = { text, problems, document, nodes: 0, open: new Set(), isTooBig: false };
  const root = build(document.contents, { start: 0, end: 0 }, 0, builder);
  return builder.isTooBig ? null : root;
}

interface Builder {
  readonly text: string;
  readonly problems: ProblemList;
  readonly document: Document.Parsed;
  nodes: number;
  /** Collections being expanded, to see an alias inside its own anchor. */
  readonly open: Set<unknown>;
  isTooBig: boolean;
}

const nothing: ReadonlyMap<string, never> = new Map<string, never>();

function build(node: unknown, fallback: Span, depth: number, builder: Builder): Located {
  builder.nodes += 1;
  const span = spanOf(node, fallback);
  if (builder.nodes > MAX_NODES) return tooBig(span, builder, 'TOO_LARGE', `more than ${MAX_NODES} values`);
  if (depth > MAX_DEPTH) return tooBig(span, builder, 'TOO_DEEP', `nested deeper than ${MAX_DEPTH} levels`);
  checkTag(node, span, builder);
  if (isAlias(node)) return buildAlias(node, span, depth, builder);
  if (isMap(node) || isSeq(node)) {
    builder.open.add(node);
    const located = isMap(node)
      ? buildMap(node.items, span, depth, builder)
      : buildList(node.items, span, depth, builder);
    builder.open.delete(node);
    return located;
  }
  return buildScalar(node, span, builder);
}

function buildAlias(node: unknown, span: Span, depth: number, builder: Builder): Located {
  const target = isAlias(node) ? node.resolve(builder.document) : undefined;
  if (target === undefined || builder.open.has(target)) {
    const message = target === undefined ? 'this alias has no anchor before it' : 'this alias contains itself';
    const hint = 'A text that starts with * must be quoted, for example "*.example.com".';
    builder.problems.add({ code: 'ALIAS', span, message, hint, excerpt: lineOf(builder.text, span.start) });
    return scalar(null, span);
  }
  return build(target, span, depth, builder);
}

function buildMap(pairs: readonly Pair[], span: Span, depth: number, builder: Builder): Located {
  const entries = new Map<string, { key: Span; node: Located }>();
  const value: Record<string, unknown> = {};
  for (const pair of pairs) {
    const keySpan = spanOf(pair.key, span);
    const key = checkKey(pair.key, keySpan, builder);
    const node = build(pair.value, keySpan, depth + 1, builder);
    if (key === null) continue;
    if (entries.has(key)) {
      const message = `the key \`${clip(key)}\` is there twice`;
      builder.problems.add({ code: 'DUPLICATE_KEY', span: keySpan, message, hint: 'Keep one of the two.' });
      continue;
    }
    entries.set(key, { key: keySpan, node });
    value[key] = node.value;
  }
  return { kind: 'map', span, value, entries, items: [] };
}

function buildList(items: readonly unknown[], span: Span, depth: number, builder: Builder): Located {
  const located = items.map((item) => build(item, span, depth + 1, builder));
  return { kind: 'list', span, value: located.map((item) => item.value), entries: nothing, items: located };
}

/** JSON's numbers; YAML would also read 0x1BB, 0o17, 0443, +1, .5 and .inf, which people read differently. */
const plainNumber = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$/;

function buildScalar(node: unknown, span: Span, builder: Builder): Located {
  const value = isScalar(node) ? node.value : null;
  if (typeof value !== 'number' && typeof value !== 'bigint') return scalar(value, span);
  const source = isScalar(node) && typeof node.source === 'string' ? node.source : '';
  if (!plainNumber.test(source) || !Number.isFinite(Number(value))) {
    const message = 'this number is written in a form that people read differently';
    const hint = 'Write a plain decimal number, or quote the text.';
    builder.problems.add({ code: 'NUMBER', span, message, hint, excerpt: lineOf(builder.text, span.start) });
  }
  return scalar(Number(value), span);
}

function scalar(value: unknown, span: Span): Located {
  return { kind: 'scalar', span, value, entries: nothing, items: [] };
}

/** Names every JavaScript object answers to: as keys they would reach prototypes instead of data. */
const specialKeys = new Set(['__proto__', 'constructor', 'prototype']);

function checkKey(key: unknown, span: Span, builder: Builder): string | null {
  checkTag(key, span, builder);
  if (!isScalar(key) || typeof key.value !== 'string') {
    builder.problems.add({
      code: 'KEY_TYPE',
      span,
      message: 'a key must be text',
      hint: 'Quote it if it is meant as text.',
      excerpt: isScalar(key) ? undefined : null,
    });
    return null;
  }
  if (key.value === '<<') {
    builder.problems.add({
      code: 'MERGE_KEY',
      span,
      message: 'merge keys are not allowed',
      hint: 'Write the keys out.',
    });
    return null;
  }
  if (specialKeys.has(key.value)) {
    builder.problems.add({ code: 'SPECIAL_KEY', span, message: `the key \`${key.value}\` is not allowed` });
    return null;
  }
  return key.value;
}

function checkTag(node: unknown, span: Span, builder: Builder): void {
  if (!isScalar(node) && !isMap(node) && !isSeq(node)) return;
  if (node.tag === undefined) return;
  builder.problems.add({
    code: 'TAG',
    span,
    message: 'YAML tags are not allowed',
    hint: 'Remove the tag; quote a value that must be text.',
    excerpt: null,
  });
}

function tooBig(span: Span, builder: Builder, code: ProblemCode, what: string): Located {
  if (!builder.isTooBig) builder.problems.add({ code, span, message: `the document has ${what}`, excerpt: null });
  builder.isTooBig = true;
  return scalar(null, span);
}

function spanOf(node: unknown, fallback: Span): Span {
  if (!isScalar(node) && !isMap(node) && !isSeq(node) && !isAlias(node)) return fallback;
  const range = (node as Node).range; // Every node of a parsed document has one; the type guards above widen it away.
  return range ? { start: range[0], end: range[1] } : fallback;
}

/** Our words for the parser's codes: its own messages may quote the source, and the source may be a secret. */
const syntaxMessages: Readonly<Record<string, Words>> = {
  MULTIPLE_DOCS: ['MULTIPLE_DOCUMENTS', 'there is more than one document', 'Keep one document a file.'],
  TAB_AS_INDENT: ['TAB', 'tabs are not allowed', 'Indent with spaces.'],
  TAG_RESOLVE_FAILED: ['TAG', 'YAML tags are not allowed', 'Remove the tag; quote a value that must be text.'],
  MULTIPLE_TAGS: ['TAG', 'YAML tags are not allowed'],
  BAD_ALIAS: [
    'ALIAS',
    'this alias has no anchor before it',
    'A text that starts with * must be quoted, for example "*.example.com".',
  ],
  BAD_SCALAR_START: ['SYNTAX', 'a text cannot start with this character', 'Quote the text: "@…", "`…", "%…".'],
  BAD_INDENT: [
    'SYNTAX',
    'the indentation does not fit the lines before',
    'Items of one list start in the same column.',
  ],
  BAD_DQ_ESCAPE: ['SYNTAX', 'unknown escape in a double-quoted text', "Use 'single quotes' for a backslash."],
  MISSING_CHAR: ['SYNTAX', 'a closing quote, bracket, comma, colon or space is missing'],
  MULTILINE_IMPLICIT_KEY: ['SYNTAX', 'a key must fit on one line', 'Check the indentation of this line.'],
  KEY_OVER_1024_CHARS: ['SYNTAX', 'a key is far too long'],
  BLOCK_AS_IMPLICIT_KEY: ['SYNTAX', 'two values in one line', 'Quote a text that holds ": ".'],
  BLOCK_IN_FLOW: ['SYNTAX', 'a block list or mapping cannot stand inside brackets'],
  UNEXPECTED_TOKEN: ['SYNTAX', 'this is not expected here', 'Check quotes, brackets and indentation before it.'],
  RESOURCE_EXHAUSTION: ['TOO_DEEP', 'the document is nested too deeply'],
};

function addSyntaxProblem(error: YAMLError, text: string, contentEnd: number, problems: ProblemList): void {
  const start = Math.max(0, Math.min(error.pos[0], text.length));
  // The parser often says the same twice.
  if (problems.hasErrorIn({ start, end: start + 1 })) return;
  const isAtEnd = start > 0 && start >= contentEnd && error.code !== 'MULTIPLE_DOCS';
  const [code, message, hint] = isAtEnd ? unfinished : (syntaxMessages[error.code] ?? invalid);
  problems.add(() => ({ code, span: { start, end: start + 1 }, message, hint, excerpt: lineOf(text, start) }));
}

type Words = readonly [code: ProblemCode, message: string, hint?: string];
const invalid: Words = ['SYNTAX', 'this is not valid YAML'];
const unfinished: Words = ['SYNTAX', 'the document ends too early', 'A bracket or a quote before it is not closed.'];
