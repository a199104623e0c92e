/** The one way from the text of a policy file to something `decide` can use. */
import { compile } from '../compile.ts';
import type { CompiledPolicy } from '../compiled.ts';
import { runPolicyTests } from '../policy-tests.ts';

import type { PolicyDocument, PolicyProblem } from '../types.ts';
import { literalSecret, mayHoldSecret } from './credential-meaning.ts';
import { type DocumentCheck, documentCheck } from './document-check.ts';
import { readDocument } from './document-meaning.ts';
import { lint } from './lint.ts';
import { refuseNotYet } from './not-yet.ts';
import { internalPolicySchema } from './policy-schema.ts';
import type { ProblemList } from './problem.ts';
import type { RawDocument } from './raw-document.ts';
import { addSchemaProblems, type DocumentPath } from './schema-problems.ts';
import { MAX_POLICY_BYTES, readSource } from './source-text.ts';
import { type Located, strictTree } from './strict-tree.ts';

export interface LoadPolicyOptions {
  /** Shown in problems; nothing is opened. */
  readonly file: string;
}

export type LoadedPolicy =
  | {
      readonly ok: true;
      readonly document: PolicyDocument;
      readonly policy: CompiledPolicy;
      readonly warnings: readonly PolicyProblem[];
    }
  /** Errors, and warnings among them, in the order of the file. */
  | { readonly ok: false; readonly problems: readonly PolicyProblem[] };

/**
 * Loads a policy: strict syntax, schema, meaning, and the document's own tests. Everything that is wrong is reported at
 * once; nothing that is wrong is repaired. Never throws on any `source`.
 */
export function loadPolicy(source: string | Uint8Array, options: LoadPolicyOptions): LoadedPolicy {
  const { text, problems } = readSource(source, { ...options, maxBytes: MAX_POLICY_BYTES, codePrefix: 'POLICY' });
  if (problems.hasErrors) return { ok: false, problems: problems.list() };
  const tree = strictTree(text, problems);
  if (tree === null) return { ok: false, problems: problems.list() };
  const check = documentCheck(text, tree, problems, mayHoldSecret);
  const document = readTree(tree, check, problems);
  if (document === null || problems.hasErrors) return { ok: false, problems: problems.list() };
  const policy = compile(document);
  const tested = runTests(policy, check);
  if (!problems.hasErrors) lint(document, tested, check);
  const list = problems.list();
  return problems.hasErrors ? { ok: false, problems: list } : { ok: true, document, policy, warnings: list };
}

function readTree(tree: Located, check: DocumentCheck, problems: ProblemList): PolicyDocument | null {
  const later = refuseNotYet(tree, problems);
  const broken = addSchemaProblems(
    later.value,
    tree,
    {
      schema: internalPolicySchema,
      withhold: mayHoldSecret,
      rename: (path, keyword) => (path[2] === 'secret' && keyword === 'pattern' ? literalSecret : null),
      skip: (path, keyword) => emptiness.has(keyword) && later.isTouched(path),
    },
    problems,
  );
  if (broken.some((path) => path.length === 0 && tree.kind !== 'map')) return null;
  const unusable = new Set([...later.skipped, ...broken.map((path) => path.slice(0, 2).join('/'))]);
  const isUsable = (path: DocumentPath): boolean => !unusable.has(path.join('/'));
  // Parts that do not satisfy the schema are passed over by `isUsable`, so the rest has this shape.
  return readDocument(later.value as RawDocument, isUsable, check, !problems.hasErrors);
}

/** Keywords that fail when a part of a later version was taken out. */
const emptiness = new Set(['required', 'minItems', 'minProperties']);

/** Reports failing tests; the answer names the rules that decided some test. */
function runTests(policy: CompiledPolicy, check: DocumentCheck): ReadonlySet<string> {
  const deciding = new Set<string>();
  for (const [index, result] of runPolicyTests(policy).entries()) {
    if (result.actual.rule !== null) deciding.add(result.actual.rule);
    if (result.passed) continue;
    const hint = 'Change the rules or the test; a policy whose tests fail is not loaded.';
    check.report(['tests', index, 'request'], {
      code: 'TEST_FAILED',
      message: `the test fails: ${result.message}`,
      hint,
    });
  }
  return deciding;
}
