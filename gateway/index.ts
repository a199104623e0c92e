/** The only door of `gateway/`. */
export type {
  AttachedSandbox,
  AttachOptions,
  Gateway,
  GatewayStatus,
  ReloadReport,
  SelftestReport,
} from './api/types.ts';
export { GatewayError, gatewayErrorCodes } from './errors.ts';
export type { GatewayOptions } from './gateway.ts';
export { startGateway } from './gateway.ts';
export type * from './types.ts';
