/** Runs every document of test/testdata/policy-errors: each problem, with its place, and no other. */
import test from 'ava';
import { parse } from 'yaml';
import { loadPolicy, policyProblemCodes } from '../../../policy/index.ts';
import { filesBelow, repositoryText } from '../../kit/source-tree.ts';

interface Case {
  readonly name: string;
  readonly document: string;
  readonly problems: readonly string[];
}

const MIN_CASES = 60;

const cases = filesBelow('test/testdata/policy-errors', '.yaml').flatMap((file) =>
  parse(repositoryText(file)).map((one: Case) => ({ ...one, file })),
);

for (const { file, name, document, problems } of cases) {
  test(`loadPolicy() refuses ${file}: ${name}`, (t) => {
    const loaded = loadPolicy(document, { file });
    if (loaded.ok) return t.fail('it loads');
    t.deepEqual(
      loaded.problems.map((problem) => `${problem.code} ${problem.line}:${problem.column}`),
      problems,
    );
    for (const problem of loaded.problems) {
      t.is(problem.file, file);
      t.true([...(problem.excerpt ?? '')].length <= 80);
      t.regex(problem.message, /^[^\n]+[^.\n]$/);
    }
  });
}

test('there are enough documents, and each code of an error is among them or in a test of its own', (t) => {
  t.true(cases.length >= MIN_CASES);
  const seen = new Set(cases.flatMap(({ problems }) => problems.map((problem: string) => problem.replace(/ .*/, ''))));
  const elsewhere = ['POLICY_ENCODING', 'POLICY_TOO_LARGE', 'POLICY_TOO_LONG', 'POLICY_TOO_MANY_PROBLEMS'];
  const missing = policyProblemCodes.filter((code) => !code.startsWith('POLICY_LINT_') && !seen.has(code));
  t.deepEqual([...missing].sort(), elsewhere);
});
