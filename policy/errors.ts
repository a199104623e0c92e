/** Thrown by `policy/` when a caller uses it wrongly; problems of a document are values ({@link PolicyProblem}), not exceptions. */
export class PolicyError extends Error {
  readonly code: PolicyErrorCode;

  constructor(code: PolicyErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'PolicyError';
    this.code = code;
  }
}

export type PolicyErrorCode = (typeof policyErrorCodes)[number];

/** Every code is explained in policy/README.md; test/architecture.test.ts checks that. */
export const policyErrorCodes = ['POLICY_INVALID'] as const;
