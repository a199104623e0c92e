/** A YAML text with the places of its values. */
import { type Document, isMap, isNode, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from 'yaml';
import type { PolicyProblem } from '../../policy/types.ts';
import type { ValuePath } from './shape.ts';

export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export interface YamlSource {
  /** False when the text is no YAML at all: nothing in `value` is to be judged. */
  readonly usable: boolean;
  readonly value: unknown;
  readonly problems: readonly PolicyProblem[];
  /** The place of a value, or of its key; of the nearest parent that exists when it does not. */
  locate(path: ValuePath, atKey: boolean): Place;
}

export function readYamlSource(text: string, file: string): YamlSource {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true, prettyErrors: false });
  const at = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { file, line: Math.max(1, line), column: Math.max(1, col) };
  };
  const problems = faults(document).map(({ message, offset }) => ({
    code: 'CONFIG_SYNTAX',
    severity: 'error' as const,
    message,
    ...at(offset),
  }));
  return {
    usable: problems.length === 0,
    value: problems.length === 0 ? document.toJS({ maxAliasCount: 0 }) : null,
    problems,
    locate: (path, atKey) => at(find(document.contents, path, atKey)),
  };
}

function find(root: Node | null, path: ValuePath, atKey: boolean): number {
  let node: unknown = root;
  let offset = root?.range?.[0] ?? 0;
  for (const [index, step] of path.entries()) {
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && item.key.value === step);
      if (pair === undefined) break;
      const target = atKey && index === path.length - 1 ? pair.key : (pair.value ?? pair.key);
      if (isNode(target)) offset = target.range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node) && typeof step === 'number') {
      node = node.items[step];
      if (isNode(node)) offset = node.range?.[0] ?? offset;
    }
  }
  return offset;
}

interface Fault {
  readonly message: string;
  readonly offset: number;
}

/** Aliases and merge keys are refused: a configuration needs neither, and they are how a small file becomes a large one. */
function faults(document: Document.Parsed): Fault[] {
  const found = [...document.errors, ...document.warnings].map((error) => ({
    message: error.message,
    offset: error.pos[0],
  }));
  if (found.length > 0) return found;
  visit(document, {
    Alias: (_key, node) => {
      found.push({ message: 'aliases are not taken in a configuration', offset: node.range?.[0] ?? 0 });
    },
    Pair: (_key, pair) => {
      if (isScalar(pair.key) && typeof pair.key.value === 'string') return;
      const offset = isNode(pair.key) ? (pair.key.range?.[0] ?? 0) : 0;
      found.push({ message: 'a key must be plain text', offset });
    },
  });
  return found;
}
