/** The tests a policy carries about itself. */
import type { CompiledPolicy } from './compiled.ts';
import { decide } from './decide.ts';
import type { PolicyTest } from './types.ts';
import { canonicalRequest } from './url.ts';

export interface PolicyTestResult {
  readonly test: PolicyTest;
  readonly passed: boolean;
  readonly actual: {
    readonly verdict: PolicyTest['expect'];
    /** A decision code, or the code of a canonical failure. */
    readonly code: string;
    readonly rule: string | null;
    readonly credentials: readonly string[];
  };
  /** Empty when passed, else what was expected and what came, in one line. */
  readonly message: string;
}

/** Runs the in-file tests in their order. A request that has no canonical form counts as denied. */
export function runPolicyTests(policy: CompiledPolicy): PolicyTestResult[] {
  return policy.document.tests.map((test) => resultOf(test, actualOf(policy, test)));
}

function actualOf(policy: CompiledPolicy, test: PolicyTest): PolicyTestResult['actual'] {
  const facts = canonicalRequest(test.method, test.url);
  if (!facts.ok) {
    return { verdict: 'deny', code: facts.code, rule: null, credentials: [] };
  }
  const { verdict, code, rule, credentials } = decide(policy, facts.value);
  return { verdict, code, rule, credentials: credentials.map(({ spec }) => spec.name) };
}

function resultOf(test: PolicyTest, actual: PolicyTestResult['actual']): PolicyTestResult {
  const faults: string[] = [];
  if (actual.verdict !== test.expect) {
    faults.push(`expected ${test.expect}, got ${actual.verdict} (${actual.code}${ofRule(actual.rule)})`);
  }
  if (test.rule !== undefined && actual.rule !== test.rule) {
    faults.push(`expected rule ${test.rule}, got ${actual.rule ?? 'none'}`);
  }
  if (test.credential !== undefined && !actual.credentials.includes(test.credential)) {
    faults.push(`expected credential ${test.credential}, got ${actual.credentials.join(', ') || 'none'}`);
  }
  return { test, passed: faults.length === 0, actual, message: faults.join('; ') };
}

function ofRule(rule: string | null): string {
  return rule === null ? '' : `, rule ${rule}`;
}
