/** The text of a configuration with the places of its values. */
import { readStrictYaml } from '../../policy/index.ts';
import type { PolicyProblem } from '../../policy/types.ts';
import type { ValuePath } from './shape.ts';

export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export type YamlSource =
  | {
      readonly ok: true;
      /** Plain data, null for an empty document. */
      readonly value: unknown;
      /** The place of a value, or of its key; of the nearest parent that exists when it does not. */
      locate(path: ValuePath, atKey: boolean): Place;
    }
  | { readonly ok: false; readonly problems: readonly PolicyProblem[] };

/** The longest configuration file read: 1,000 upstreams and 1,000 callers fit several times. */
export const MAX_CONFIG_BYTES = 1024 * 1024;

/** Reads YAML as strictly as a policy is read; what the values mean is not looked at here. */
export function readYamlSource(source: string | Uint8Array, file: string): YamlSource {
  const read = readStrictYaml(source, { file, schema: anything, maxBytes: MAX_CONFIG_BYTES, codePrefix: 'CONFIG' });
  if (!read.ok) return { ok: false, problems: read.problems.map((problem) => ({ ...problem, code: codeOf(problem) })) };
  const locate = (path: ValuePath, atKey: boolean): Place => ({
    file,
    ...read.position(path, atKey ? 'key' : 'value'),
  });
  return { ok: true, value: read.value, locate };
}

/** Values are checked by `configShape`, whose hints know more than a schema could say. */
const anything = {};

/** The reader's many codes are two for a configuration; the message says which rule it was. */
function codeOf(problem: PolicyProblem): 'CONFIG_SYNTAX' | 'CONFIG_UNREADABLE' {
  return unreadable.has(problem.code) ? 'CONFIG_UNREADABLE' : 'CONFIG_SYNTAX';
}

const unreadable = new Set(['CONFIG_TOO_LARGE', 'CONFIG_ENCODING']);
