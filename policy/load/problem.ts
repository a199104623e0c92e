/** Builds and collects the problems of one document, bounded and in document order. */
import type { PolicyProblem } from '../types.ts';
import type { ProblemCode } from './problem-codes.ts';

/** Half-open range of UTF-16 offsets into the source text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** What a check found, before it is tied to a file. `excerpt: null` withholds the text, for example because it may be a secret. */
export interface Finding {
  readonly code: ProblemCode;
  readonly span: Span;
  readonly message: string;
  readonly hint?: string | undefined;
  /** Absent = cut from the source at `span`; null = withheld. */
  readonly excerpt?: string | null | undefined;
  readonly severity?: 'error' | 'warning';
}

/** More than this helps nobody, and a hostile document must not make us build a list as long as itself. */
export const MAX_PROBLEMS = 200;

/** A terminal line of source is enough to recognise the place. */
export const MAX_EXCERPT_CHARS = 80;

/** The problems of one source text; `add` past {@link MAX_PROBLEMS} only counts. */
export interface ProblemList {
  /** A function is called only while there is room: findings of a hostile document may be costly and a million. */
  add(finding: Finding | (() => Finding)): void;
  /** Whether an error so far starts inside `span`. */
  hasErrorIn(span: Span): boolean;
  readonly hasErrors: boolean;
  /** In document order; ends with a note when some were left out. */
  list(): readonly PolicyProblem[];
}

/** Opens an empty list for `text`; positions are computed from offsets when the list is read. */
export function problemList(file: string, text: string, codePrefix: string): ProblemList {
  const findings: Finding[] = [];
  let leftOut = 0;
  let hasErrors = false;
  return {
    add(given) {
      if (findings.length >= MAX_PROBLEMS) {
        // Invariant: hasErrors errs to true. What is not looked at any more may be an error.
        hasErrors ||= typeof given === 'function' || given.severity !== 'warning';
        leftOut += 1;
        return;
      }
      const finding = typeof given === 'function' ? given() : given;
      hasErrors ||= finding.severity !== 'warning';
      findings.push(finding);
    },
    hasErrorIn: ({ start, end }) =>
      findings.some(({ span }) => span.start >= start && span.start < Math.max(end, start + 1)),
    get hasErrors() {
      return hasErrors;
    },
    list() {
      const lines = lineIndex(text);
      const ordered = [...findings].sort((a, b) => a.span.start - b.span.start);
      const problems = ordered.map((finding) => toProblem(finding, file, text, lines, codePrefix));
      if (leftOut === 0) return problems;
      const last = ordered.at(-1)?.span ?? { start: 0, end: 0 };
      const rest: Finding = {
        code: 'TOO_MANY_PROBLEMS',
        span: last,
        message: `${leftOut} further problems are not shown`,
        excerpt: null,
      };
      return [...problems, toProblem(rest, file, text, lines, codePrefix)];
    },
  };
}

/** Offsets at which the lines of `text` start. */
export function lineIndex(text: string): readonly number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

/** 1-based line and column (UTF-16 units) of an offset. */
export function lineAndColumn(lines: readonly number[], offset: number): { line: number; column: number } {
  let low = 0;
  let high = lines.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((lines[middle] ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return { line: low + 1, column: offset - (lines[low] ?? 0) + 1 };
}

/** First line of `text`, without control characters, cut to {@link MAX_EXCERPT_CHARS}. */
export function clip(text: string): string {
  const line = text
    .slice(0, 4 * MAX_EXCERPT_CHARS)
    .split(/[\r\n]/, 1)
    .join('')
    // Terminal escapes, bidirectional overrides and lone surrogates in a policy must not act on the reader's screen.
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, '\u{FFFD}')
    .trim();
  const characters = [...line];
  if (characters.length <= MAX_EXCERPT_CHARS) return line;
  return `${characters.slice(0, MAX_EXCERPT_CHARS - 1).join('')}…`;
}

function toProblem(
  finding: Finding,
  file: string,
  text: string,
  lines: readonly number[],
  codePrefix: string,
): PolicyProblem {
  const offset = Math.max(0, Math.min(finding.span.start, text.length));
  const { line, column } = lineAndColumn(lines, offset);
  const excerpt = finding.excerpt === undefined ? text.slice(offset, finding.span.end) : finding.excerpt;
  const shown = excerpt === null ? '' : clip(excerpt);
  return {
    code: `${codePrefix}_${finding.code}`,
    severity: finding.severity ?? 'error',
    message: finding.message,
    file,
    line,
    column,
    ...(shown === '' ? {} : { excerpt: shown }),
    ...(finding.hint === undefined ? {} : { hint: finding.hint }),
  };
}
