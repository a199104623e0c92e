/** `policy`: load, test and explain policy files without a gateway. */
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import {
  type Explanation,
  explainRequest,
  formatProblems,
  type LoadedPolicy,
  loadPolicy,
  MAX_POLICY_BYTES,
  type PolicyTestResult,
  policySchema,
  type RuleNote,
  runPolicyTests,
} from '../../../policy/index.ts';
import { type Cli, FINDINGS, GOOD, UsageError } from '../cli.ts';
import { withExamples, withJson } from '../configuration.ts';
import { plainText } from '../plain-text.ts';

interface JsonOption {
  readonly json?: boolean;
}

export function addPolicy(program: Command, cli: Cli): void {
  const policy = program.command('policy').description('check, test and explain policy files');
  withExamples(
    policy,
    'sallyport policy check policies/*.yaml',
    "sallyport policy explain p.yaml 'GET https://api.github.com/user'",
  );
  addCheck(policy, cli);
  addTest(policy, cli);
  addExplain(policy, cli);
  addSchema(policy, cli);
}

function addCheck(policy: Command, cli: Cli): void {
  const command = policy
    .command('check')
    .description('load and lint policy files, their tests included (exit 1: errors; with --strict warnings too)')
    .argument('<files...>', 'policy files')
    .option('--strict', 'warnings count as findings')
    .action(
      cli.action((files: string[], options: JsonOption & { strict?: boolean }) => {
        const checked = files.map((file) => ({ file, loaded: load(file) }));
        const isBad = ({ loaded }: { loaded: LoadedPolicy }): boolean =>
          !loaded.ok || (options.strict === true && loaded.warnings.length > 0);
        if (options.json === true)
          cli.json(checked.map((one) => ({ file: one.file, ok: !isBad(one), ...summary(one.loaded) })));
        else for (const one of checked) cli.out(checkText(one.file, one.loaded));
        return checked.some(isBad) ? FINDINGS : GOOD;
      }),
    );
  withExamples(
    withJson(command),
    'sallyport policy check policies/*.yaml',
    'sallyport policy check --strict --json p.yaml',
  );
}

function addTest(policy: Command, cli: Cli): void {
  const command = policy
    .command('test')
    .description('run the tests inside policy files (exit 1: one fails or a file does not load)')
    .argument('<files...>', 'policy files')
    .action(
      cli.action((files: string[], options: JsonOption) => {
        const tested = files.map((file) => {
          const loaded = load(file);
          return { file, loaded, results: loaded.ok ? runPolicyTests(loaded.policy) : [] };
        });
        const isBad = (one: (typeof tested)[number]): boolean =>
          !one.loaded.ok || one.results.some((result) => !result.passed);
        if (options.json === true) {
          cli.json(
            tested.map((one) => ({ file: one.file, ok: !isBad(one), tests: one.results, ...summary(one.loaded) })),
          );
        } else for (const one of tested) cli.out(testText(one.file, one.loaded, one.results));
        return tested.some(isBad) ? FINDINGS : GOOD;
      }),
    );
  withExamples(withJson(command), 'sallyport policy test policies/*.yaml');
}

function addExplain(policy: Command, cli: Cli): void {
  const command = policy
    .command('explain')
    .description('say which rule wins for a request and why (exit 0: allowed, 1: refused)')
    .argument('<file>', 'policy file')
    .argument('<request>', "such as 'GET https://host/path'; without a method, GET")
    .action(
      cli.action((file: string, request: string, options: JsonOption) => {
        const loaded = load(file);
        if (!loaded.ok) {
          if (options.json === true) cli.json({ file, ok: false, ...summary(loaded) });
          else cli.out(checkText(file, loaded));
          return FINDINGS;
        }
        const { method, url } = parseRequest(request);
        const explained = explainRequest(loaded.policy, method, url);
        if (options.json === true) cli.json(explained.ok ? explained.value : { refused: explained });
        else if (explained.ok) cli.out(explanationText(explained.value));
        else
          cli.out(
            `refused with ${explained.status} before any rule: ${plainText(explained.reason)} (${explained.code})`,
          );
        return explained.ok && explained.value.decision.verdict === 'allow' ? GOOD : FINDINGS;
      }),
    );
  withExamples(
    withJson(command),
    "sallyport policy explain p.yaml 'GET https://api.github.com/repos/acme/site'",
    "sallyport policy explain --json p.yaml 'DELETE https://api.github.com/repos/acme/site'",
  );
}

function addSchema(policy: Command, cli: Cli): void {
  const command = policy
    .command('schema')
    .description('print the JSON Schema of a policy file, for editors')
    .action(
      cli.action(() => {
        cli.json(policySchema());
        return GOOD;
      }),
    );
  withExamples(withJson(command), 'sallyport policy schema > policy.schema.json');
}

function load(file: string): LoadedPolicy {
  try {
    // One byte more than the loader takes: enough for it to say that the file is too large.
    return loadPolicy(readFileSync(file).subarray(0, MAX_POLICY_BYTES + 1), { file });
  } catch (cause) {
    const state = cause instanceof Error && 'code' in cause ? String(cause.code) : 'it could not be read';
    throw new UsageError(`Cannot read ${plainText(file)}: ${state}`);
  }
}

function parseRequest(request: string): { method: string; url: string } {
  const [first = '', second, ...more] = request.trim().split(/ +/);
  if (more.length > 0) throw new UsageError("Cannot explain this request: expected 'METHOD URL'");
  return second === undefined ? { method: 'GET', url: first } : { method: first, url: second };
}

function summary(loaded: LoadedPolicy) {
  if (!loaded.ok) return { problems: loaded.problems };
  const { name, digest, ruleCount } = loaded.policy;
  return { policy: { name, digest, rules: ruleCount }, problems: loaded.warnings };
}

function checkText(file: string, loaded: LoadedPolicy): string {
  if (!loaded.ok) return formatProblems(loaded.problems);
  const { policy, document, warnings } = loaded;
  const line = `${plainText(file)}: ok: ${policy.name}, ${policy.ruleCount} rules, ${document.credentials.length} credentials, ${document.tests.length} tests passed`;
  return warnings.length === 0 ? line : `${formatProblems(warnings)}\n${line}`;
}

function testText(file: string, loaded: LoadedPolicy, results: readonly PolicyTestResult[]): string {
  if (!loaded.ok) return formatProblems(loaded.problems);
  const lines = results.map(({ test, passed, actual, message }) => {
    const by = actual.rule === null ? actual.code : `rule ${actual.rule}`;
    return `${passed ? 'ok  ' : 'FAIL'}  ${test.method} ${plainText(test.url)}: ${passed ? `${actual.verdict} by ${by}` : message}`;
  });
  const passed = results.filter((result) => result.passed).length;
  return [...lines, `${plainText(file)}: ${passed} of ${results.length} tests passed`].join('\n');
}

function explanationText(explanation: Explanation): string {
  const { decision, winner, losers, nearMisses, canonicalised, credentials } = explanation;
  return [
    `request     ${plainText(explanation.request)}`,
    ...canonicalised.map((change) => `            ${plainText(change)}`),
    `verdict     ${decision.verdict} (${decision.code})`,
    `rule        ${winner === null ? 'none' : noteText(winner)}`,
    `reason      ${plainText(decision.reason)}`,
    ...(decision.hint === '' ? [] : [`hint        ${plainText(decision.hint)}`]),
    `credential  ${credentials.length === 0 ? 'none' : credentials.join(', ')}`,
    ...losers.map((note) => `also        ${noteText(note)}`),
    ...nearMisses.map((note) => `not         ${noteText(note)}`),
  ].join('\n');
}

function noteText(note: RuleNote): string {
  return `${note.rule} (line ${note.line}): ${plainText(note.why)}`;
}
