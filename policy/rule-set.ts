/** Rules of one effect in one bucket, with an index by path segment where there are many. */
import { LINEAR_RULES } from './bounds.ts';
import type { CompiledRule, RuleSet, SegmentIndex } from './compiled.ts';
import type { PathPattern } from './path-pattern.ts';
import { mismatch, type Question } from './question.ts';

/** Builds the set from rules sorted by name. */
export function ruleSetOf(rules: readonly CompiledRule[]): RuleSet {
  if (rules.length === 0) {
    return emptyRuleSet;
  }
  return { rules, segments: rules.length > LINEAR_RULES ? indexBySegment(rules) : null };
}

/** The rule of the set that matches, or null. Which one of several is fixed by their names and paths, never by file order. */
export function findRule(set: RuleSet, question: Question): CompiledRule | null {
  const { segments } = set;
  if (segments === null) {
    return set.rules.length === 0 ? null : firstMatch(set.rules, question);
  }
  const forms = set.rules[0]?.rule.effect === 'deny' ? question.denyForms() : question.openForms();
  for (const form of forms) {
    const found = firstMatch(segments.first.get(firstSegment(form)), question) ?? lastMatch(segments, form, question);
    if (found !== null) {
      return found;
    }
  }
  return firstMatch(segments.rest, question);
}

export const emptyRuleSet: RuleSet = Object.freeze({ rules: [], segments: null });

function lastMatch(segments: SegmentIndex, form: string, question: Question): CompiledRule | null {
  return segments.last.size === 0 ? null : firstMatch(segments.last.get(lastSegment(form)), question);
}

function firstMatch(rules: readonly CompiledRule[] | undefined, question: Question): CompiledRule | null {
  if (rules === undefined) {
    return null;
  }
  for (const rule of rules) {
    if (mismatch(rule, question) === null) {
      return rule;
    }
  }
  return null;
}

/** Invariant: a rule that matches is found below a segment of one of the question's forms, or in `rest`. */
function indexBySegment(rules: readonly CompiledRule[]): SegmentIndex {
  const first = new Map<string, CompiledRule[]>();
  const last = new Map<string, CompiledRule[]>();
  const rest: CompiledRule[] = [];
  const unconditional = new Set<string>();
  for (const rule of rules) {
    if (rule.paths.length === 0) {
      addPathless(rule, rest, unconditional);
      continue;
    }
    let isInRest = false;
    for (const pattern of rule.paths) {
      const ends = literalEnds(pattern);
      if (ends.first !== null) {
        add(first, ends.first, rule);
      } else if (ends.last !== null) {
        add(last, ends.last, rule);
      } else if (!isInRest) {
        isInRest = true;
        rest.push(rule);
      }
    }
  }
  return { first, last, rest };
}

/** Of rules that are the same question, only the first by name can ever win. */
function addPathless(rule: CompiledRule, rest: CompiledRule[], seen: Set<string>): void {
  const { scheme, ports, methods, encodedSlash } = rule;
  const key = JSON.stringify([scheme, ports, methods.bits, [...methods.others].sort(), rule.query, encodedSlash]);
  if (!seen.has(key)) {
    seen.add(key);
    rest.push(rule);
  }
}

function add(map: Map<string, CompiledRule[]>, key: string, rule: CompiledRule): void {
  const rules = map.get(key);
  if (rules === undefined) {
    map.set(key, [rule]);
  } else if (rules[rules.length - 1] !== rule) {
    rules.push(rule);
  }
}

function literalEnds(pattern: PathPattern): { readonly first: string | null; readonly last: string | null } {
  const first = firstSegment(pattern.text);
  const last = lastSegment(pattern.text);
  return { first: first.includes('*') ? null : first, last: last.includes('*') ? null : last };
}

function firstSegment(path: string): string {
  const slash = path.indexOf('/', 1);
  return slash < 0 ? path.slice(1) : path.slice(1, slash);
}

function lastSegment(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
