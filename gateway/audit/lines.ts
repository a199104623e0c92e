/** Splits a byte stream into lines of bounded length. */
import { maxLineBytes } from './files.ts';

export interface Line {
  /** Without the newline. */
  readonly bytes: Buffer;
  /** False: the stream ended before a newline. */
  readonly isComplete: boolean;
  /** Longer than any record: `bytes` is its beginning, and nothing follows. */
  readonly isTooLong: boolean;
}

/** Ends after a line that is too long: what comes after it cannot be told apart from it. */
export async function* readLines(stream: AsyncIterable<Buffer>): AsyncGenerator<Line, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of stream) {
    let from = 0;
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
      const piece = chunk.subarray(from, at);
      const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
      rest = Buffer.alloc(0);
      from = at + 1;
      yield { bytes, isComplete: true, isTooLong: bytes.length > maxLineBytes };
      if (bytes.length > maxLineBytes) return;
    }
    if (from < chunk.length) rest = Buffer.concat([rest, chunk.subarray(from)]);
    if (rest.length > maxLineBytes) {
      yield { bytes: rest, isComplete: false, isTooLong: true };
      return;
    }
  }
  if (rest.length > 0) yield { bytes: rest, isComplete: false, isTooLong: false };
}

const newline = 10;
