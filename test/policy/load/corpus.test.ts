/** Runs every policy of test/testdata/policy against its requests. */
import test from 'ava';
import { parse } from 'yaml';
import { type CompiledPolicy, canonicalRequest, decide, formatProblems, loadPolicy } from '../../../policy/index.ts';
import { damerauLevenshtein } from '../../../policy/load/did-you-mean.ts';
import { filesBelow, repositoryText } from '../../kit/source-tree.ts';

interface DenyRow {
  readonly deny: string;
  readonly code?: string;
  readonly rule?: string;
  readonly reason?: string;
}

interface AllowRow {
  readonly allow: string;
  readonly rule: string;
  readonly credentials?: readonly string[];
  readonly twin: DenyRow;
}

interface Case {
  readonly note: string;
  readonly policy: string;
  readonly requests: readonly (AllowRow | DenyRow)[];
}

const MIN_POLICIES = 40;
const MIN_ROWS = 400;

const files = filesBelow('test/testdata/policy', '.yaml');
const cases = files.map((file): readonly [string, Case] => [file, parse(repositoryText(file))]);

for (const [file, { policy: text, requests }] of cases) {
  test(`decide() answers as ${file} says`, (t) => {
    const loaded = loadPolicy(text, { file });
    if (!loaded.ok) return t.fail(formatProblems(loaded.problems));
    for (const row of requests) {
      if ('allow' in row) {
        t.deepEqual(answer(loaded.policy, row.allow), allowed(row), row.allow);
        t.is(
          damerauLevenshtein(row.allow, row.twin.deny),
          1,
          `${row.allow} and its twin ${row.twin.deny} differ by one edit`,
        );
      }
      const deny = 'allow' in row ? row.twin : row;
      const { reason, ...rest } = refusal(loaded.policy, deny.deny);
      t.deepEqual(rest, { verdict: 'deny', code: deny.code ?? 'default_denied', rule: deny.rule ?? null }, deny.deny);
      t.true(reason.length > 0 && reason.includes(deny.reason ?? ''), `${deny.deny}: ${reason}`);
    }
  });

  test(`decide() does not depend on the order of the rules of ${file}`, (t) => {
    const loaded = loadPolicy(text, { file });
    const document = parse(text);
    const reversed = { ...document, rules: (document.rules ?? []).toReversed() };
    const other = loadPolicy(JSON.stringify(reversed), { file });
    if (!loaded.ok || !other.ok) return t.fail(other.ok ? 'does not load' : formatProblems(other.problems));
    for (const row of requests) {
      const request = 'allow' in row ? row.allow : row.deny;
      t.deepEqual(answer(other.policy, request), answer(loaded.policy, request), request);
    }
  });
}

test('the corpus has as many policies and rows as it should', (t) => {
  const rows = cases.flatMap(([, { requests }]) => requests.map((row) => ('allow' in row ? 2 : 1)));
  t.true(cases.length >= MIN_POLICIES);
  t.true(rows.reduce((sum: number, count) => sum + count, 0) >= MIN_ROWS);
});

function allowed(row: AllowRow) {
  return { verdict: 'allow', code: 'allowed', rule: row.rule, credentials: (row.credentials ?? []).toSorted() };
}

function answer(policy: CompiledPolicy, request: string) {
  const facts = factsOf(request);
  if (!facts.ok) return { verdict: 'deny', code: facts.code, rule: null, credentials: [] };
  const { verdict, code, rule, credentials } = decide(policy, facts.value);
  return { verdict, code, rule, credentials: credentials.map(({ spec }) => spec.name).sort() };
}

function refusal(policy: CompiledPolicy, request: string) {
  const facts = factsOf(request);
  if (!facts.ok) return { verdict: 'deny', code: facts.code, rule: null, reason: facts.reason };
  const { verdict, code, rule, reason } = decide(policy, facts.value);
  return { verdict, code, rule, reason };
}

function factsOf(request: string) {
  const space = request.indexOf(' ');
  return canonicalRequest(request.slice(0, space), request.slice(space + 1));
}
