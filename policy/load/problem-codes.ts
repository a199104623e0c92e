/** The codes of problems in documents; each has its row in policy/README.md. */

/** Stable: tools match on them. A reader with another prefix (`CONFIG_…`) uses the syntax and schema codes only. */
export const policyProblemCodes = [
  // Syntax.
  'POLICY_ALIAS',
  'POLICY_BOM',
  'POLICY_CHARACTER',
  'POLICY_DIRECTIVE',
  'POLICY_DUPLICATE_KEY',
  'POLICY_ENCODING',
  'POLICY_KEY_TYPE',
  'POLICY_MERGE_KEY',
  'POLICY_MULTIPLE_DOCUMENTS',
  'POLICY_NUMBER',
  'POLICY_SPECIAL_KEY',
  'POLICY_SYNTAX',
  'POLICY_TAB',
  'POLICY_TAG',
  'POLICY_TOO_DEEP',
  'POLICY_TOO_LARGE',
  'POLICY_TOO_MANY_ALIASES',
  'POLICY_TOO_MANY_PROBLEMS',
  // Schema.
  'POLICY_DUPLICATE',
  'POLICY_EMPTY',
  'POLICY_FORM',
  'POLICY_MISSING_KEY',
  'POLICY_NOT_YET',
  'POLICY_RANGE',
  'POLICY_TOO_LONG',
  'POLICY_TYPE',
  'POLICY_UNKNOWN_KEY',
  'POLICY_VALUE',
  // Meaning.
  'POLICY_AMBIGUOUS',
  'POLICY_CIDR',
  'POLICY_CLEARTEXT',
  'POLICY_DUPLICATE_NAME',
  'POLICY_FORMAT',
  'POLICY_HEADER',
  'POLICY_HOST',
  'POLICY_INJECT',
  'POLICY_METHOD',
  'POLICY_NEVER_LIST',
  'POLICY_NOT_COVERED',
  'POLICY_NOT_PRIVATE',
  'POLICY_NO_DESTINATION',
  'POLICY_PATH',
  'POLICY_QUERY',
  'POLICY_SECRET_LITERAL',
  'POLICY_SECRET_REFERENCE',
  'POLICY_TEST_FAILED',
  'POLICY_UNKNOWN_NAME',
  'POLICY_WIDE_HOST',
  // Warnings.
  'POLICY_LINT_ANY_METHOD',
  'POLICY_LINT_ANY_PATH',
  'POLICY_LINT_CLEARTEXT',
  'POLICY_LINT_NEVER_MATCHES',
  'POLICY_LINT_PUBLIC_SUFFIX',
  'POLICY_LINT_REPEATED',
  'POLICY_LINT_SHADOWED',
  'POLICY_LINT_STAYS_SHUT',
  'POLICY_LINT_UNTESTED',
  'POLICY_LINT_WRITE_WITH_CREDENTIAL',
] as const;

export type PolicyProblemCode = (typeof policyProblemCodes)[number];

/** A code without its prefix. */
export type ProblemCode = Stem<PolicyProblemCode>;

type Stem<Code> = Code extends `POLICY_${infer Rest}` ? Rest : never;
