/** Masks injected values an upstream sends back (C4), in place and with their own length, so framing never changes. */

import type { PreparedCredential } from '../../vault/index.ts';

const MASK = 42; // *

const patternCache = new WeakMap<PreparedCredential, readonly Buffer[]>();

export class Scrubber {
  /** Occurrences masked so far. */
  replaced = 0;
  readonly #patterns: readonly Buffer[];

  constructor(credentials: readonly PreparedCredential[]) {
    const [only] = credentials;
    this.#patterns =
      credentials.length === 1 && only !== undefined ? patternsOf(only) : credentials.flatMap(patternsOf);
  }

  /** Masks every whole occurrence in `buf[start..end)`. */
  mask(buf: Buffer, start: number, end: number): void {
    const view = buf.subarray(start, end);
    for (const pattern of this.#patterns) {
      for (let pos = view.indexOf(pattern); pos >= 0; pos = view.indexOf(pattern, pos + pattern.length)) {
        view.fill(MASK, pos, pos + pattern.length);
        this.replaced++;
      }
    }
  }

  /** How many of the last bytes of `buf[start..end)` could be the beginning of a value: they wait for what follows. */
  heldBytes(buf: Buffer, start: number, end: number): number {
    let held = 0;
    for (const pattern of this.#patterns) {
      const first = pattern[0];
      for (let length = Math.min(pattern.length - 1, end - start); length > held; length--) {
        if (buf[end - length] === first && buf.compare(pattern, 0, length, end - length, end) === 0) {
          held = length;
          break;
        }
      }
    }
    return held;
  }
}

/** The shortest forms that cover all: whoever masks the secret has masked `Bearer secret` as well. */
function patternsOf(credential: PreparedCredential): readonly Buffer[] {
  const known = patternCache.get(credential);
  if (known !== undefined) return known;
  const { echoes } = credential;
  const shortest = echoes.filter((echo) => !echoes.some((other) => other.length < echo.length && echo.includes(other)));
  patternCache.set(credential, shortest);
  return shortest;
}
