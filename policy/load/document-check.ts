/** Ties a finding about the meaning of a document to the place where it was written. */
import { type Finding, lineAndColumn, lineIndex, type ProblemList } from './problem.ts';
import type { ProblemCode } from './problem-codes.ts';
import { type DocumentPath, excerptOf, locate, locateKey } from './schema-problems.ts';
import type { Located } from './strict-tree.ts';

export interface Report {
  readonly code: ProblemCode;
  readonly message: string;
  readonly hint?: string | undefined;
  /** Point at the key instead of the value. */
  readonly atKey?: boolean;
  readonly severity?: 'error' | 'warning';
}

/** What every check of meaning needs: where things are, and where to report. */
export interface DocumentCheck {
  report(path: DocumentPath, report: Report): void;
  line(path: DocumentPath): number;
}

/** `withhold`: places whose text may be a secret. */
export function documentCheck(
  text: string,
  tree: Located,
  problems: ProblemList,
  withhold: (path: DocumentPath) => boolean,
): DocumentCheck {
  const lines = lineIndex(text);
  return {
    report(path, { atKey, ...report }) {
      const node = locate(tree, path);
      const place = atKey === true ? { span: locateKey(tree, path) } : { span: node.span, excerpt: excerptOf(node) };
      const finding: Finding = { ...report, ...place, ...(withhold(path) ? { excerpt: null } : {}) };
      problems.add(finding);
    },
    line: (path) => lineAndColumn(lines, locate(tree, path).span.start).line,
  };
}

/** Reads each item with `read`, which reports what is wrong and gives null then. Null when any item is wrong. */
export function readAll<Raw, Value>(
  items: readonly Raw[] | undefined,
  read: (item: Raw, index: number) => Value | null,
): readonly Value[] | null {
  const values = (items ?? []).map(read);
  const good = values.filter((value): value is Value => value !== null);
  return good.length === values.length ? good : null;
}
