/** Strict reader for YAML and JSON documents that people write: every problem at once, each with its place. */
import type { PolicyProblem } from '../types.ts';
import { lineAndColumn, lineIndex } from './problem.ts';
import { addSchemaProblems, type DocumentPath, locate, locateKey } from './schema-problems.ts';
import { MAX_POLICY_BYTES, readSource } from './source-text.ts';
import { strictTree } from './strict-tree.ts';

export interface ReadStrictYamlOptions {
  /** Shown in problems; nothing is opened. */
  readonly file: string;
  /** JSON Schema, draft 2020-12; compiled once per object, so keep it in a constant. */
  readonly schema: object;
  /** Default {@link MAX_POLICY_BYTES}. */
  readonly maxBytes?: number;
  /** First word of the problem codes, default `POLICY` as in `POLICY_UNKNOWN_KEY`. */
  readonly codePrefix?: string;
  /** True for places whose text may be a secret: it is then never quoted in a problem. */
  readonly withhold?: (path: DocumentPath) => boolean;
}

export type StrictYaml =
  | {
      readonly ok: true;
      /** Plain data that satisfies the schema. */
      readonly value: unknown;
      /** 1-based place of a value (or of its key), or of the nearest parent that exists. */
      readonly position: (
        path: DocumentPath,
        of?: 'value' | 'key',
      ) => { readonly line: number; readonly column: number };
    }
  | { readonly ok: false; readonly problems: readonly PolicyProblem[] };

/**
 * Reads one YAML 1.2 (core schema) or JSON document and checks it against `schema`. Never throws on any `source`; throws
 * ajv's error only when `schema` itself is wrong.
 */
export function readStrictYaml(source: string | Uint8Array, options: ReadStrictYamlOptions): StrictYaml {
  const { text, problems } = readSource(source, {
    file: options.file,
    maxBytes: options.maxBytes ?? MAX_POLICY_BYTES,
    codePrefix: options.codePrefix ?? 'POLICY',
  });
  if (problems.hasErrors) return { ok: false, problems: problems.list() };
  const tree = strictTree(text, problems);
  if (tree === null) return { ok: false, problems: problems.list() };
  addSchemaProblems(tree.value, tree, { schema: options.schema, withhold: options.withhold }, problems);
  if (problems.hasErrors) return { ok: false, problems: problems.list() };
  const lines = lineIndex(text);
  return {
    ok: true,
    value: tree.value,
    position: (path, of = 'value') =>
      lineAndColumn(lines, (of === 'key' ? locateKey(tree, path) : locate(tree, path).span).start),
  };
}
