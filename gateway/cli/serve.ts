/** A gateway with its API listeners, started and stopped as one. */
import { type ApiListener, type Gateway, startControlApi, startHealthApi } from '../api/index.ts';
import { startGateway } from '../gateway.ts';
import type { GatewayConfig } from '../types.ts';

export interface Serving {
  readonly gateway: Gateway;
  readonly controlSocket: string;
  /** `host:port` of the health API, or null. */
  readonly healthAddress: string | null;
  /** May be called twice. */
  close(): Promise<void>;
}

/** Starts all of it or nothing: what was started is stopped in reverse when a later step fails. */
export async function serve(config: GatewayConfig): Promise<Serving> {
  // The gateway first: it holds the audit lock, so two of them cannot both go on to the control socket.
  const gateway = await startGateway(config);
  const listeners: ApiListener[] = [];
  const close = async (): Promise<void> => {
    for (const listener of listeners.toReversed()) await listener.close();
    await gateway.close();
  };
  try {
    listeners.push(await startControlApi(gateway, config.api.socket));
    if (config.api.listen !== null) listeners.push(await startHealthApi(gateway, config.api.listen));
  } catch (error) {
    await close();
    throw error;
  }
  return { gateway, controlSocket: config.api.socket, healthAddress: listeners[1]?.address ?? null, close };
}
