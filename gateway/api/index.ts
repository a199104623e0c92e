/** The API of a running gateway: its listeners and the client of the control socket. */
export { probeSocket, type SocketState } from './claim-socket.ts';
export { type ApiListener, startControlApi, startHealthApi } from './control-api.ts';
export { type ControlClient, controlClient } from './control-client.ts';
export type {
  AttachedSandbox,
  AttachOptions,
  Gateway,
  GatewayStatus,
  ReloadReport,
  SelftestCheck,
  SelftestReport,
} from './types.ts';
