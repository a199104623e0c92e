/** The operator's API on a Unix socket, and the health API on TCP. Who can open the socket is the operator: there is no key. */
import { chmodSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import { GatewayError } from '../errors.ts';
import type { ListenAddress } from '../types.ts';
import { claimSocket } from './claim-socket.ts';
import { createApp } from './create-app.ts';
import { healthRoutes } from './health-routes.ts';
import { operationRoutes } from './operation-routes.ts';
import { sandboxRoutes } from './sandbox-routes.ts';
import type { Gateway } from './types.ts';

/** A listener of the API. `close` may be called twice. */
export interface ApiListener {
  /** The socket's path, or `host:port` as bound. */
  readonly address: string;
  close(): Promise<void>;
}

/**
 * Serves everything on the control socket: folder 0700, socket 0600.
 * @throws GatewayError `GATEWAY_LISTEN_FAILED`
 */
export async function startControlApi(gateway: Gateway, socketPath: string): Promise<ApiListener> {
  await claimSocket(socketPath);
  const app = createApp();
  // The socket admits its owner (and root) only; Node has no SO_PEERCRED to tell the two apart.
  const actor = `control-socket:uid=${process.getuid?.() ?? 'unknown'}`;
  await app.register(healthRoutes, { gateway, showReason: true });
  await app.register(operationRoutes, { gateway, actor });
  await app.register(sandboxRoutes, { gateway, actor });
  await listen(app, { path: socketPath }, socketPath);
  try {
    chmodSync(socketPath, 0o600);
  } catch (cause) {
    await app.close();
    throw listenFailed(socketPath, cause);
  }
  return { address: socketPath, close: () => app.close() };
}

/**
 * Serves `/healthz`, `/readyz` and `/metrics` on TCP, and nothing else.
 * @throws GatewayError `GATEWAY_LISTEN_FAILED`
 */
export async function startHealthApi(
  gateway: Pick<Gateway, 'status' | 'metrics'>,
  address: ListenAddress,
): Promise<ApiListener> {
  const app = createApp();
  await app.register(healthRoutes, { gateway, showReason: false });
  const name = `${address.host}:${address.port}`;
  await listen(app, { host: address.host, port: address.port }, name);
  const bound = app.server.address();
  const port = typeof bound === 'object' && bound !== null ? bound.port : address.port;
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  return { address: `${host}:${port}`, close: () => app.close() };
}

async function listen(
  app: FastifyInstance,
  where: { path: string } | { host: string; port: number },
  name: string,
): Promise<void> {
  try {
    await app.listen(where);
  } catch (cause) {
    await app.close();
    throw listenFailed(name, cause);
  }
}

function listenFailed(name: string, cause: unknown): GatewayError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'it failed';
  return new GatewayError('GATEWAY_LISTEN_FAILED', `Cannot listen on ${name}: ${code}`, { cause });
}
