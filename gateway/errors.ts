/** Thrown by `gateway/`. Messages never hold a secret or a header value. */
export class GatewayError extends Error {
  readonly code: GatewayErrorCode;

  constructor(code: GatewayErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'GatewayError';
    this.code = code;
  }
}

export type GatewayErrorCode = (typeof gatewayErrorCodes)[number];

/** Every code is explained in gateway/README.md; test/architecture.test.ts checks that. */
export const gatewayErrorCodes = [
  'GATEWAY_CONFIG_INVALID',
  'GATEWAY_POLICY_INVALID',
  'GATEWAY_POLICY_MISSING',
  'GATEWAY_LISTEN_FAILED',
  'GATEWAY_NOT_RUNNING',
  'GATEWAY_CONTROL_FAILED',
  'GATEWAY_AUDIT_LOCKED',
  'GATEWAY_AUDIT_FAILED',
  'GATEWAY_AUDIT_FULL',
  'GATEWAY_CALLER_INVALID',
  'GATEWAY_SELFTEST_FAILED',
] as const;
