/** From bytes or text to text that may be parsed: size, UTF-8, byte order mark and characters that deceive a reader. */
import { MAX_PROBLEMS, type ProblemList, problemList } from './problem.ts';
import type { ProblemCode } from './problem-codes.ts';

/** A policy a person can review fits in a fraction of this; the parser's cost grows with the size. */
export const MAX_POLICY_BYTES = 1024 * 1024;

export interface SourceOptions {
  readonly file: string;
  readonly maxBytes: number;
  readonly codePrefix: string;
}

export interface SourceText {
  readonly text: string;
  readonly problems: ProblemList;
}

/**
 * Decodes strictly. `problems.hasErrors` afterwards means: do not parse.
 * Control and bidirectional characters are refused everywhere, comments included: what a reviewer sees must be what is loaded.
 */
export function readSource(source: string | Uint8Array, options: SourceOptions): SourceText {
  const size = typeof source === 'string' ? Buffer.byteLength(source, 'utf8') : source.byteLength;
  if (size > options.maxBytes) return tooLarge(size, options);
  const text = typeof source === 'string' ? source : decodeUtf8(source);
  const problems = problemList(options.file, text, options.codePrefix);
  findForbiddenCharacters(text, problems);
  return { text, problems };
}

function tooLarge(size: number, options: SourceOptions): SourceText {
  const problems = problemList(options.file, '', options.codePrefix);
  problems.add({
    code: 'TOO_LARGE',
    span: { start: 0, end: 0 },
    message: `the document has ${size} bytes, the limit is ${options.maxBytes}`,
    hint: 'Split it into several documents.',
  });
  return { text: '', problems };
}

/** Bytes that are no UTF-8 become lone surrogates, which {@link findForbiddenCharacters} then reports where they are. */
function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return decodeByLine(bytes);
  }
}

function decodeByLine(bytes: Uint8Array): string {
  const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const lenient = new TextDecoder('utf-8', { ignoreBOM: true });
  const lines: string[] = [];
  let start = 0;
  // A multi-byte sequence never holds 0x0A, so lines can be judged one by one.
  // The document is refused for the first; looking for more than can be shown would cost an exception each.
  for (let broken = 0; start <= bytes.length && broken < MAX_PROBLEMS; ) {
    const newline = bytes.indexOf(0x0a, start);
    const end = newline === -1 ? bytes.length : newline;
    const line = bytes.subarray(start, end);
    try {
      lines.push(strict.decode(line));
    } catch {
      broken += 1;
      lines.push(lenient.decode(line).replace('\u{FFFD}', '\u{D800}'));
    }
    start = end + 1;
  }
  return lines.join('\n');
}

const forbidden =
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|\p{Cs}/gu;

function findForbiddenCharacters(text: string, problems: ProblemList): void {
  for (const match of text.matchAll(forbidden)) {
    const start = match.index;
    // A line break of DOS files is two characters, and only together harmless.
    if (match[0] === '\r' && text[start + 1] === '\n') continue;
    const span = { start, end: start + match[0].length };
    problems.add(() => ({ ...describe(match[0], start), span, excerpt: lineOf(text, start) }));
  }
}

function describe(character: string, start: number): { code: ProblemCode; message: string; hint: string } {
  if (character === '\t') {
    return {
      code: 'TAB',
      message: 'tabs are not allowed',
      hint: 'Indent with spaces; inside a quoted string write \\t.',
    };
  }
  if (character === '\ufeff' && start === 0) {
    return {
      code: 'BOM',
      message: 'the document starts with a byte order mark',
      hint: 'Save it as UTF-8 without BOM.',
    };
  }
  if (/\p{Cs}/u.test(character)) {
    return { code: 'ENCODING', message: 'this is not valid UTF-8', hint: 'Save the file as UTF-8.' };
  }
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return {
    code: 'CHARACTER',
    message: `the invisible or control character U+${code} is not allowed`,
    hint: 'Remove it; a reader must see what is loaded.',
  };
}

/** The line around an offset, fit to be shown although nobody knows what its values are; null when it may name a secret. */
export function lineOf(text: string, start: number): string | null {
  const before = text.slice(Math.max(0, start - MAX_LINE_CHARS), start);
  const lineStart = before.lastIndexOf('\n') + 1;
  // What stands at the start of an endless line is unknown, so nothing of it is shown.
  if (lineStart === 0 && start > MAX_LINE_CHARS) return null;
  const line =
    before.slice(lineStart) +
    text
      .slice(start, start + MAX_LINE_CHARS)
      .split('\n', 1)
      .join('');
  return secretWord.test(line) ? null : line.replace(tokenRun, '…');
}

/** Lines of policies are shorter; the cost of an excerpt must not depend on the document. */
const MAX_LINE_CHARS = 1000;

const secretWord = /secret|token|passw|passphrase|key|credential|authorization|format/i;
/** Long unbroken runs look like keys; shorter words are needed to recognise the place. */
const tokenRun = /[A-Za-z0-9_+=-]{20,}/g;
