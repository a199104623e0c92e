/** One request as the matcher sees it: the forms of its path and query that rules compare with, each made at most once. */
import type { Bucket, Conditions } from './compiled.ts';
import { hasMethod, methodBit } from './methods.ts';
import { matchPath, type PathPattern, patternOfText } from './path-pattern.ts';
import { allowsQuery, deniesQuery, foldText, type QueryPair, readQuery } from './query-pattern.ts';
import { withoutParameters } from './target.ts';
import type { HttpFacts } from './types.ts';

/** What of a rule a request does not meet; the first that fails, in this order. */
export type Mismatch = 'scheme' | 'port' | 'method' | 'path' | 'encoded_slash' | 'query';

/** Reused from one decision to the next, so that allowing a request allocates nothing. */
export class Question {
  facts: HttpFacts = emptyFacts;
  methodBit = 0;
  /** Upper-case token and its bit: no spelling of a method passes a deny rule. */
  denyMethod = '';
  denyBit = 0;
  /** Buckets of the destination, most specific first; the array may be longer than `bucketCount`. */
  readonly buckets: Bucket[] = [];
  bucketCount = 0;
  /** Buckets from here on give their deny rules only: they belong to IPv4 addresses embedded in the destination. */
  openCount = 0;
  /** The path has more than one form even for rules that open. */
  isOdd = false;
  #openForms: readonly string[] | null = null;
  #denyForms: readonly string[] | null = null;
  #readings: readonly QueryPair[][] | null = null;

  ask(facts: HttpFacts): void {
    this.facts = facts;
    this.methodBit = methodBit(facts.method);
    this.denyMethod = facts.method.toUpperCase();
    this.denyBit = this.denyMethod === facts.method ? this.methodBit : methodBit(this.denyMethod);
    this.bucketCount = 0;
    this.openCount = 0;
    this.isOdd = facts.target.encodedSlash || facts.target.path.includes(';');
    this.#openForms = null;
    this.#denyForms = null;
    this.#readings = null;
  }

  addBucket(bucket: Bucket | null | undefined): void {
    if (bucket !== null && bucket !== undefined) {
      this.buckets[this.bucketCount] = bucket;
      this.bucketCount += 1;
    }
  }

  /** Forms that a rule must match all of to open something: as sent, with `%2F` as a slash, without parameters. */
  openForms(): readonly string[] {
    this.#openForms ??= openFormsOf(this.facts.target.path);
    return this.#openForms;
  }

  /** Forms of which a deny rule needs to match only one: the same and the decoded ones, folded, without a last slash. */
  denyForms(): readonly string[] {
    this.#denyForms ??= denyFormsOf(this.facts.target.path);
    return this.#denyForms;
  }

  /** Every reading of the query; an absent query is one reading without pairs. */
  readings(): readonly QueryPair[][] {
    this.#readings ??= readQuery(this.facts.target.query ?? '');
    return this.#readings;
  }
}

/** The first condition that the request does not meet, or null when all hold. The host is the bucket's business. */
export function mismatch(conditions: Conditions, question: Question): Mismatch | null {
  const { facts } = question;
  if (conditions.scheme !== null && conditions.scheme !== facts.scheme) {
    return 'scheme';
  }
  if (conditions.ports !== null && !conditions.ports.includes(facts.port)) {
    return 'port';
  }
  return conditions.isDeny ? denyMismatch(conditions, question) : openMismatch(conditions, question);
}

/** Whether scheme, port and method hold; whether the rule then applies is up to path and query. */
export function isInPlay(conditions: Conditions, question: Question): boolean {
  const first = mismatch(conditions, question);
  return first === null || first === 'path' || first === 'encoded_slash' || first === 'query';
}

/** The patterns a deny rule compares with: folded as written, and folded after decoding where that differs. */
export function denyPatterns(pattern: PathPattern): PathPattern[] {
  const folded = pattern.text.toLowerCase();
  const texts = [folded];
  if (folded.includes('%')) {
    texts.push(collapse(foldText(decodeURIComponent(pattern.text))));
  }
  return texts.map(patternOfText);
}

const emptyFacts: HttpFacts = {
  scheme: 'https',
  destination: { kind: 'name', name: '' },
  port: 0,
  method: '',
  target: { path: '/', query: null, encodedSlash: false, encodedPercent: false },
};

function openMismatch(conditions: Conditions, question: Question): Mismatch | null {
  const { facts } = question;
  if (!hasMethod(conditions.methods, question.methodBit, facts.method)) {
    return 'method';
  }
  if (question.isOdd) {
    const odd = oddPathMismatch(conditions, question);
    if (odd !== null) {
      return odd;
    }
  } else if (conditions.paths.length > 0 && !matchesSome(conditions.paths, facts.target.path)) {
    return 'path';
  }
  return conditions.query.length > 0 && !allowsQuery(conditions.query, question.readings()) ? 'query' : null;
}

function oddPathMismatch(conditions: Conditions, question: Question): Mismatch | null {
  const isEncoded = question.facts.target.encodedSlash;
  if (conditions.paths.length > 0) {
    const forms = question.openForms();
    const matched = forms.filter((form) => matchesSome(conditions.paths, form)).length;
    if (matched < forms.length) {
      return isEncoded && matched > 0 ? 'encoded_slash' : 'path';
    }
  }
  return isEncoded && !conditions.encodedSlash ? 'encoded_slash' : null;
}

function denyMismatch(conditions: Conditions, question: Question): Mismatch | null {
  if (!hasMethod(conditions.methods, question.denyBit, question.denyMethod)) {
    return 'method';
  }
  if (conditions.paths.length > 0 && !question.denyForms().some((form) => matchesSome(conditions.paths, form))) {
    return 'path';
  }
  return conditions.query.length > 0 && !deniesQuery(conditions.query, question.readings()) ? 'query' : null;
}

function matchesSome(patterns: readonly PathPattern[], path: string): boolean {
  for (const pattern of patterns) {
    if (matchPath(pattern, path)) {
      return true;
    }
  }
  return false;
}

function openFormsOf(path: string): readonly string[] {
  return withStripped([path, collapse(path.replaceAll('%2F', '/'))]);
}

function denyFormsOf(path: string): readonly string[] {
  const folded = path.toLowerCase();
  const hasEscape = path.includes('%');
  if (!hasEscape && !path.includes(';') && (path === '/' || !path.endsWith('/'))) {
    return [folded];
  }
  const decoded = hasEscape ? collapse(foldText(decodeURIComponent(path))) : folded;
  const forms = withStripped([folded, decoded]);
  return [...new Set([...forms, ...forms.map((form) => form.replace(/(?<=.)\/$/, ''))])];
}

function withStripped(forms: readonly string[]): readonly string[] {
  const all = new Set(forms);
  for (const form of forms) {
    const stripped = withoutParameters(form);
    if (stripped !== null) {
      all.add(collapse(stripped));
    }
  }
  return [...all];
}

function collapse(path: string): string {
  return path.replace(/\/{2,}/g, '/');
}
