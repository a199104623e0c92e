/** Problems as a terminal shows them. */
import type { PolicyProblem } from '../types.ts';
import { clip } from './problem.ts';

/** One block a problem: `file:line:column: error CODE: message`, then the offending text and what to do. */
export function formatProblems(problems: readonly PolicyProblem[]): string {
  return problems.map(formatProblem).join('\n');
}

function formatProblem(problem: PolicyProblem): string {
  const place = `${plain(problem.file)}:${problem.line}:${problem.column}`;
  const lines = [`${place}: ${problem.severity} ${problem.code}: ${plain(problem.message)}`];
  if (problem.excerpt !== undefined) lines.push(`  | ${clip(problem.excerpt)}`);
  if (problem.hint !== undefined) lines.push(`  = ${plain(problem.hint)}`);
  return lines.join('\n');
}

/** Names from a document end up in messages; none of them may move the cursor or start a second line. */
function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, '\u{FFFD}');
}
