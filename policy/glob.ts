/** `*` for any run of characters, nothing else special: the inside of a path segment and query values. */

export type Glob =
  | { readonly kind: 'literal'; readonly text: string }
  /** The text between stars; first and last are anchored and may be empty. */
  | { readonly kind: 'parts'; readonly first: string; readonly middle: readonly string[]; readonly last: string };

export function globOf(text: string): Glob {
  const parts = text.split('*');
  const [first = ''] = parts;
  if (parts.length === 1) {
    return { kind: 'literal', text };
  }
  return { kind: 'parts', first, middle: parts.slice(1, -1).filter((part) => part !== ''), last: parts.at(-1) ?? '' };
}

/** Whether the glob means exactly the characters from `from` up to `to`. Linear: each middle part takes its first place. */
export function matchGlob(glob: Glob, text: string, from: number, to: number): boolean {
  if (glob.kind === 'literal') {
    return to - from === glob.text.length && text.startsWith(glob.text, from);
  }
  const { first, middle, last } = glob;
  const tail = to - last.length;
  if (from + first.length > tail || !text.startsWith(first, from) || !text.startsWith(last, tail)) {
    return false;
  }
  let at = from + first.length;
  for (const part of middle) {
    const found = text.indexOf(part, at);
    if (found < 0 || found + part.length > tail) {
      return false;
    }
    at = found + part.length;
  }
  return true;
}

/** Whether the text has no lone surrogate, which no encoding could carry. */
export function isWellFormed(text: string): boolean {
  return !/\p{Cs}/u.test(text);
}
