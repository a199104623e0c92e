/** Looks at the tokens before anything recursive does: depth, aliases, directives and size of a YAML text. */
import { Lexer } from 'yaml';
import type { ProblemList } from './problem.ts';
import type { ProblemCode } from './problem-codes.ts';

/** Policies need five levels. Deeper nesting only attacks the recursion of what reads it. */
export const MAX_DEPTH = 32;

/** Aliases multiply when expanded ("billion laughs"); sixteen are plenty for a list of hosts used twice. */
export const MAX_ALIASES = 16;

/** A MiB of real policy has about 200,000 tokens; a MiB of punctuation has a million, and costs seconds. */
export const MAX_TOKENS = 500_000;

/** Eight columns a level, at the deepest level. */
const MAX_INDENT_COLUMNS = 8 * MAX_DEPTH;

/** Every level may open and close, with a tag, an anchor and a comma in between. */
const MAX_INDICATOR_RUN = 4 * MAX_DEPTH;
/** In YAML two: the value of one key and the next key. */
const MAX_VALUE_RUN = 8;

/** What the lexer puts before the text of a scalar. */
const SCALAR_MARK = '\u001f';
/** What the lexer yields where nothing was written. */
const unwritten = new Set(['\u0002', '\u0018', SCALAR_MARK]);

interface Walk {
  offset: number;
  tokens: number;
  flowDepth: number;
  indicatorsInLine: number;
  atLineStart: boolean;
  anchors: number;
  aliases: number;
  /** Indicators, and values, one after the other. */
  indicatorRun: number;
  valueRun: number;
}

/** Adds what makes the text unfit for the parser to `problems`; true when it may be parsed. */
export function guardYaml(text: string, problems: ProblemList): boolean {
  const walk: Walk = {
    offset: 0,
    tokens: 0,
    flowDepth: 0,
    indicatorsInLine: 0,
    atLineStart: true,
    anchors: 0,
    aliases: 0,
    indicatorRun: 0,
    valueRun: 0,
  };
  let isScalar = false;
  for (const token of new Lexer().lex(text)) {
    if (unwritten.has(token)) {
      isScalar = token === SCALAR_MARK;
      continue;
    }
    if (!isScalar && !guardToken(token, walk, problems)) return false;
    if (isScalar) walk.atLineStart = token.endsWith('\n');
    if (!guardRuns(token, isScalar, walk, problems)) return false;
    isScalar = false;
    walk.offset += token.length;
    walk.tokens += 1;
    if (walk.tokens > MAX_TOKENS) {
      return refuse(problems, walk, 'TOO_LARGE', `the document has more than ${MAX_TOKENS} tokens`);
    }
  }
  return true;
}

function guardToken(token: string, walk: Walk, problems: ProblemList): boolean {
  const first = token[0];
  if (first === '\n' || first === '\r') {
    walk.atLineStart = true;
    walk.indicatorsInLine = 0;
    return true;
  }
  const wasLineStart = walk.atLineStart;
  walk.atLineStart = false;
  if (first === ' ') {
    if (!wasLineStart || token.length <= MAX_INDENT_COLUMNS) return true;
    return refuse(problems, walk, 'TOO_DEEP', `a line is indented by more than ${MAX_INDENT_COLUMNS} columns`);
  }
  if (first === '%' && wasLineStart) {
    // `%YAML 1.1` would turn `no` into false and `010` into 8.
    return refuse(problems, walk, 'DIRECTIVE', 'YAML directives are not allowed', token);
  }
  if (first === '&' || first === '*') return guardAlias(first, walk, problems);
  return guardDepth(token, walk, problems);
}

function guardDepth(token: string, walk: Walk, problems: ProblemList): boolean {
  if (token === '[' || token === '{') walk.flowDepth += 1;
  else if (token === ']' || token === '}') walk.flowDepth -= 1;
  else if (walk.flowDepth <= 0 && (token === '-' || token === '?' || token === ':')) walk.indicatorsInLine += 1;
  if (walk.flowDepth <= MAX_DEPTH && walk.indicatorsInLine <= MAX_DEPTH) return true;
  return refuse(problems, walk, 'TOO_DEEP', `the document is nested deeper than ${MAX_DEPTH} levels`);
}

/** The parser makes an error object for each of a million commas: seconds and gigabytes for what is no YAML anyway. */
function guardRuns(token: string, isScalar: boolean, walk: Walk, problems: ProblemList): boolean {
  const first = token[0] ?? '';
  if (!isScalar && ' \r\n#'.includes(first)) return true;
  const isValue = isScalar || first === '"' || first === "'";
  walk.valueRun = isValue ? walk.valueRun + 1 : 0;
  walk.indicatorRun = isValue ? 0 : walk.indicatorRun + 1;
  if (walk.valueRun <= MAX_VALUE_RUN && walk.indicatorRun <= MAX_INDICATOR_RUN) return true;
  return refuse(problems, walk, 'SYNTAX', 'a long run of punctuation, or of values without punctuation');
}

function guardAlias(first: string, walk: Walk, problems: ProblemList): boolean {
  if (first === '&') walk.anchors += 1;
  else walk.aliases += 1;
  if (walk.anchors <= MAX_ALIASES && walk.aliases <= MAX_ALIASES) return true;
  return refuse(problems, walk, 'TOO_MANY_ALIASES', `more than ${MAX_ALIASES} anchors or aliases`);
}

function refuse(
  problems: ProblemList,
  walk: Walk,
  code: ProblemCode,
  message: string,
  excerpt: string | null = null,
): false {
  problems.add({ code, span: { start: walk.offset, end: walk.offset + 1 }, message, excerpt });
  return false;
}
