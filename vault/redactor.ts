/** Takes known secret values out of texts on their way to a log, a record or an error page. */
import { VaultError } from './errors.ts';
import { redactQuery } from './redact-query.ts';
import { textForms } from './text-forms.ts';
import type { Redactor } from './types.ts';

/** A redactor that can also clean a query for the audit record. */
export interface SecretRedactor extends Redactor {
  /** Keys stay, every value becomes `*`; see {@link redactQuery}. */
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
  let index: FormIndex | undefined;

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

/** Pairs of the low bytes of two units. */
const PAIRS = 0x10000;

/** UTF-16 units that are hashed. A form with fewer (one or two characters beyond ASCII) is chance as likely as secret. */
const PROBE_UNITS = 4;

interface FormIndex {
  /** 1 for each pair of units some form begins with: a text is passed over at one look a character (an audit record is searched for every request). */
  readonly pairs: Uint8Array;
  /** Forms by the hash of their first four units, longest first. */
  readonly forms: ReadonlyMap<number, readonly Form[]>;
}

/** A text is read once, however many values are known. */
function buildIndex(values: ReadonlyMap<string, readonly (readonly string[])[]>): FormIndex {
  const pairs = new Uint8Array(PAIRS);
  const forms = new Map<number, Form[]>();
  for (const [name, known] of values) {
    const replacement = `[redacted:${name}]`;
    for (const text of known.flat()) {
      if (text.length < PROBE_UNITS) continue;
      const key = probeAt(text, 0);
      pairs[pairOf(text.charCodeAt(0), text.charCodeAt(1))] = 1;
      const bucket = forms.get(key);
      if (bucket === undefined) forms.set(key, [{ text, replacement }]);
      else bucket.push({ text, replacement });
    }
  }
  for (const bucket of forms.values()) bucket.sort((a, b) => b.text.length - a.text.length);
  return { pairs, forms };
}

function replaceForms(text: string, { pairs, forms }: FormIndex): string {
  let out = '';
  let kept = 0;
  let at = 0;
  let current = text.charCodeAt(0);
  while (at <= text.length - PROBE_UNITS) {
    const next = text.charCodeAt(at + 1);
    const form = pairs[pairOf(current, next)] === 1 ? formAt(text, at, forms) : undefined;
    if (form === undefined) {
      at += 1;
      current = next;
      continue;
    }
    out += text.slice(kept, at) + form.replacement;
    at += form.text.length;
    kept = at;
    current = text.charCodeAt(at);
  }
  return kept === 0 ? text : out + text.slice(kept);
}

function formAt(text: string, at: number, forms: FormIndex['forms']): Form | undefined {
  return forms.get(probeAt(text, at))?.find((candidate) => text.startsWith(candidate.text, at));
}

function pairOf(first: number, second: number): number {
  return ((first & 0xff) << 8) | (second & 0xff);
}

/** A hash of four units; equal hashes are told apart by comparing the whole form. */
function probeAt(text: string, at: number): number {
  const low = text.charCodeAt(at) + text.charCodeAt(at + 1) * 31;
  return (low + text.charCodeAt(at + 2) * 961 + text.charCodeAt(at + 3) * 29_791) & 0xff_ffff;
}
