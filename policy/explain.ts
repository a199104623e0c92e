/** Why a request is allowed or refused: the winner, every rule that matched and lost, and the near misses. */

import type { CompiledPolicy, CompiledRule } from './compiled.ts';
import { decide } from './decide.ts';
import { matchesDestination } from './destination.ts';
import { type Mismatch, mismatch, Question } from './question.ts';
import { requestText } from './refusals.ts';
import type { Decision, Effect, HttpFacts } from './types.ts';

export interface Explanation {
  readonly policy: string;
  /** The request as judged and sent, without its query. */
  readonly request: string;
  readonly facts: HttpFacts;
  readonly decision: Decision;
  /** What the canonical form changed, one sentence each; filled by `explainRequest`. */
  readonly canonicalised: readonly string[];
  /** null when no rule decided (never-list, default deny, encoded characters). */
  readonly winner: RuleNote | null;
  /** Rules that match but do not win, each with the reason. */
  readonly losers: readonly RuleNote[];
  /** Rules for this host that do not match, each with the first condition that fails. */
  readonly nearMisses: readonly RuleNote[];
  /** Names of the credentials that would be injected. */
  readonly credentials: readonly string[];
}

export interface RuleNote {
  readonly rule: string;
  readonly effect: Effect;
  readonly line: number;
  readonly why: string;
}

/** Explains the very decision `decide` gives. Looks at every rule, so it is not for the data path. */
export function explain(policy: CompiledPolicy, facts: HttpFacts, canonicalised: readonly string[] = []): Explanation {
  const decision = decide(policy, facts);
  const notes = notesOf(policy, facts, decision);
  return {
    policy: policy.name,
    request: requestText(facts),
    facts,
    decision,
    canonicalised,
    ...notes,
    credentials: decision.credentials.map(({ spec }) => spec.name),
  };
}

type Notes = Pick<Explanation, 'winner' | 'losers' | 'nearMisses'>;

function notesOf(policy: CompiledPolicy, facts: HttpFacts, decision: Decision): Notes {
  let winner: RuleNote | null = null;
  const losers: RuleNote[] = [];
  const nearMisses: RuleNote[] = [];
  const question = new Question();
  if (decision.code === 'rule_failed') {
    // The facts cannot be evaluated; doing it again would only fail again.
    return { winner, losers, nearMisses };
  }
  question.ask(facts);
  for (const rule of policy.index.rules) {
    if (!matchesDestination(rule, facts.destination)) {
      continue;
    }
    const missing = missingOf(rule, question);
    if (missing !== null) {
      nearMisses.push(noteOf(rule, missing));
    } else if (rule.rule.name === decision.rule) {
      winner = noteOf(rule, `wins: ${rule.rule.effect} rule, and nothing stronger matches`);
    } else {
      losers.push(noteOf(rule, lostTo(rule, decision)));
    }
  }
  return { winner, losers, nearMisses };
}

function noteOf({ rule }: CompiledRule, why: string): RuleNote {
  return { rule: rule.name, effect: rule.effect, line: rule.line, why };
}

function missingOf(rule: CompiledRule, question: Question): string | null {
  if (!rule.isDeny && rule.rule.protocol !== 'http') {
    return `is for ${rule.rule.protocol}, not for HTTP requests`;
  }
  const missing = mismatch(rule, question);
  return missing === null ? null : describe[missing](rule);
}

const describe: Readonly<Record<Mismatch, (rule: CompiledRule) => string>> = {
  scheme: ({ scheme }) => `is for ${scheme} only`,
  port: ({ ports }) => `is for port ${(ports ?? []).join(', ')}`,
  method: ({ rule }) => `is for ${rule.methods.length === 0 ? 'registered methods' : rule.methods.join(', ')}`,
  path: ({ rule }) => `has paths ${rule.paths.join(', ')}, and not every form of the path matches`,
  encoded_slash: ({ rule }) =>
    rule.encodedSlash
      ? 'matches only one reading of the encoded slash'
      : 'does not take an encoded slash (encodedSlash)',
  query: ({ rule }) => `has conditions on query ${Object.keys(rule.query).join(', ')}`,
};

function lostTo({ rule }: CompiledRule, decision: Decision): string {
  if (decision.rule !== null) {
    return decision.verdict === rule.effect
      ? `matches as well; ${decision.rule} names the host closer or comes first by name`
      : `matches, but ${decision.verdict} rule ${decision.rule} is stronger than ${rule.effect}`;
  }
  return `matches, but ${decision.code} is stronger`;
}
