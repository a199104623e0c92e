/** Takes known secret values out of texts on their way to a log, a record or an error page. */
import { VaultError } from './errors.ts';
import { redactQuery } from './redact-query.ts';
import { textForms } from './text-forms.ts';
import type { Redactor } from './types.ts';

/** A redactor that can also clean a query for the audit record. */
export interface SecretRedactor extends Redactor {
  /** Keys stay, every value becomes `…`; see {@link redactQuery}. */
  redactQuery(query: string): string;
  /** Forgets every value. */
  close(): void;
}

/** Distinct values known at once: ten times the credentials of a large installation. Full means refuse, not forget. */
export const MAX_REDACTED_VALUES = 4_096;
/** Values kept per name, the oldest goes first: a rotated secret may still be in flight, its tenth predecessor is not. */
export const MAX_VALUES_PER_NAME = 20;
/** Shorter values would turn every log into holes, and the holes would spell the value. */
export const MIN_REDACTED_BYTES = 4;

/**
 * Replaces values, longest first, also in their base64, base64url, percent-encoded and JSON-escaped forms.
 * It does not promise to find a value that was split, hashed, compressed or encoded twice.
 */
export function createRedactor(): SecretRedactor {
  const values = new Map<string, string[][]>();
  let count = 0;
  // Built when the next text comes: many values are added in a row at start.
  let index: Map<number, Form[]> | undefined;

  function add(name: string, value: string | Buffer): void {
    const bytes = typeof value === 'string' ? Buffer.from(value, 'utf8') : value;
    if (bytes.length < MIN_REDACTED_BYTES) return;
    const forms = textForms(bytes);
    const known = values.get(name) ?? [];
    const at = known.findIndex((other) => other[0] === forms[0]);
    if (at >= 0) {
      known.push(...known.splice(at, 1));
      return;
    }
    if (known.length >= MAX_VALUES_PER_NAME) {
      known.shift();
      count -= 1;
    }
    if (count >= MAX_REDACTED_VALUES) {
      throw new VaultError('VAULT_REDACTOR_FULL', `Cannot redact ${name}: ${MAX_REDACTED_VALUES} values are known`);
    }
    known.push(forms);
    values.set(name, known);
    count += 1;
    index = undefined;
  }

  const redactor: SecretRedactor = {
    add,
    redact(text) {
      if (count === 0) return text;
      index ??= buildIndex(values);
      return replaceForms(text, index);
    },
    redactQuery: (query) => redactQuery(query, redactor),
    close() {
      values.clear();
      index = undefined;
      count = 0;
    },
  };
  return redactor;
}

interface Form {
  readonly text: string;
  readonly replacement: string;
}

/** Forms by their first two UTF-16 units, longest first: a text is read once, however many values are known. */
function buildIndex(values: ReadonlyMap<string, readonly (readonly string[])[]>): Map<number, Form[]> {
  const index = new Map<number, Form[]>();
  for (const [name, known] of values) {
    const replacement = `[redacted:${name}]`;
    for (const text of known.flat()) {
      const key = pairAt(text, 0);
      const bucket = index.get(key);
      if (bucket === undefined) index.set(key, [{ text, replacement }]);
      else bucket.push({ text, replacement });
    }
  }
  for (const bucket of index.values()) bucket.sort((a, b) => b.text.length - a.text.length);
  return index;
}

function replaceForms(text: string, index: ReadonlyMap<number, readonly Form[]>): string {
  let out = '';
  let kept = 0;
  let at = 0;
  while (at < text.length - 1) {
    const form = index.get(pairAt(text, at))?.find((candidate) => text.startsWith(candidate.text, at));
    if (form === undefined) {
      at += 1;
      continue;
    }
    out += text.slice(kept, at) + form.replacement;
    at += form.text.length;
    kept = at;
  }
  return kept === 0 ? text : out + text.slice(kept);
}

function pairAt(text: string, at: number): number {
  return text.charCodeAt(at) * 0x10000 + text.charCodeAt(at + 1);
}
