/** Asks a person for something that must not be shown, and reads a value from a pipe. */
import type { Readable } from 'node:stream';
import type { ReadStream } from 'node:tty';
import { type Cli, UsageError } from './cli.ts';

/** Longest line a person types; a terminal's own line buffer is 4096. */
const MAX_TYPED_BYTES = 4096;

const CTRL_C = 3;
const CTRL_D = 4;
const BACKSPACE = [8, 127];
const ENTER = [10, 13];

/**
 * One line from the terminal without echo.
 * @throws UsageError when stdin is no terminal, or the user gave up with Ctrl-C or Ctrl-D
 */
export async function askHidden(cli: Cli, question: string): Promise<Buffer> {
  const terminal = terminalOf(cli);
  if (terminal === null) throw new UsageError(`Cannot ask for ${question}: there is no terminal`);
  cli.promptStream.write(`${question}: `);
  terminal.setRawMode(true);
  try {
    return await typedLine(terminal);
  } finally {
    terminal.setRawMode(false);
    terminal.pause();
    cli.promptStream.write('\n');
  }
}

/**
 * A value from a pipe (one line end at its end is dropped) or, on a terminal, from a hidden prompt asked twice.
 * The caller wipes it.
 * @throws UsageError when it is empty, too long, holds control characters, or is typed differently the second time
 */
export async function readValue(cli: Cli, question: string, maxBytes: number): Promise<Buffer> {
  const value = terminalOf(cli) === null ? await readPipe(cli.stdin, maxBytes) : await askTwice(cli, question);
  const state = unusable(value);
  if (state === null) return value;
  value.fill(0);
  throw new UsageError(`Cannot take ${question}: ${state}`);
}

/** A value with a line break could add a header of its own wherever it is injected; nobody means to store one. */
function unusable(value: Buffer): string | null {
  if (value.length === 0) return 'it is empty';
  const isControl = (byte: number): boolean => byte < 0x20 || byte === 0x7f;
  return value.some(isControl) ? 'it holds a line break or a control character, which no header can carry' : null;
}

/** As {@link askHidden}, typed twice. @throws UsageError also when the two lines differ */
export async function askTwice(cli: Cli, question: string): Promise<Buffer> {
  const first = await askHidden(cli, question);
  const second = await askHidden(cli, `${question}, again`);
  const isSame = first.equals(second);
  second.fill(0);
  if (isSame) return first;
  first.fill(0);
  throw new UsageError(`Cannot take ${question}: the two lines differ`);
}

function typedLine(terminal: ReadStream): Promise<Buffer> {
  const typed = Buffer.alloc(MAX_TYPED_BYTES);
  let length = 0;
  return new Promise((resolve, reject) => {
    const finish = (act: () => void): void => {
      terminal.off('data', onData);
      act();
      typed.fill(0);
    };
    const giveUp = (state: string): void => finish(() => reject(new UsageError(`Cannot read the answer: ${state}`)));
    const onByte = (byte: number): boolean => {
      if (byte === CTRL_C || byte === CTRL_D) giveUp('given up');
      else if (ENTER.includes(byte)) finish(() => resolve(Buffer.from(typed.subarray(0, length))));
      else if (BACKSPACE.includes(byte)) length = previousCharacter(typed, length);
      else if (length === MAX_TYPED_BYTES) giveUp('too long');
      else typed[length++] = byte;
      return !ENTER.includes(byte) && byte !== CTRL_C && byte !== CTRL_D;
    };
    const onData = (chunk: Buffer | string): void => {
      Buffer.from(chunk).every(onByte);
    };
    terminal.on('data', onData);
    terminal.resume();
  });
}

/** Backspace takes a whole UTF-8 character: back over its continuation bytes. */
function previousCharacter(typed: Buffer, length: number): number {
  let end = Math.max(0, length - 1);
  while (end > 0 && ((typed[end] ?? 0) & 0xc0) === 0x80) end--;
  return end;
}

async function readPipe(stdin: NodeJS.ReadableStream, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stdin) {
    const bytes = Buffer.from(chunk);
    chunks.push(bytes);
    size += bytes.length;
    // Two more for the line end that is dropped.
    if (size > maxBytes + 2) throw new UsageError(`Cannot take the value: longer than ${maxBytes} bytes`);
  }
  const all = Buffer.concat(chunks);
  for (const chunk of chunks) chunk.fill(0);
  return withoutLineEnd(all);
}

function withoutLineEnd(value: Buffer): Buffer {
  if (value.at(-1) !== 0x0a) return value;
  return value.subarray(0, value.at(-2) === 0x0d ? -2 : -1);
}

/** stdin as a terminal; null when it is a pipe or a file. */
function terminalOf(cli: Cli): ReadStream | null {
  const stdin: Readable | NodeJS.ReadableStream = cli.stdin;
  // Only tty.ReadStream has isTTY true.
  return cli.stdin.isTTY === true ? (stdin as ReadStream) : null;
}
