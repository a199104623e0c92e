/** Where the gateway is to live: its home and its addresses. */
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import { probeSocket } from '../../api/claim-socket.ts';
import type { GatewayConfig, ListenAddress } from '../../types.ts';
import { type Check, missing, ok } from './check.ts';

export async function placeChecks(config: GatewayConfig): Promise<readonly Check[]> {
  const isRunning = (await probeSocket(config.api.socket)) === 'live';
  const listeners = [...config.proxy.listen, ...(config.api.listen === null ? [] : [config.api.listen])];
  const ports = await Promise.all(listeners.map((address) => portCheck(address, isRunning)));
  return [homeCheck(config.home), runningCheck(config, isRunning), ...ports];
}

function homeCheck(home: string): Check {
  const name = 'home';
  const place = nearestExisting(home);
  try {
    accessSync(place, constants.W_OK | constants.X_OK);
  } catch {
    return missing(name, `${place} is not writable for this user`, 'choose another with --home or SALLYPORT_HOME');
  }
  if (place !== home) return ok(name, `${home} will be made at first use`);
  const found = statSync(home);
  if (!found.isDirectory()) return missing(name, `${home} is not a directory`, 'choose another home');
  if ((found.mode & 0o077) !== 0) return missing(name, `${home} is open to other users`, `chmod 700 ${home}`);
  return ok(name, home);
}

function runningCheck(config: GatewayConfig, isRunning: boolean): Check {
  return ok('gateway', isRunning ? `one answers at ${config.api.socket}` : 'none is running');
}

async function portCheck(address: ListenAddress, isRunning: boolean): Promise<Check> {
  const text = `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
  const name = `port ${text}`;
  const state = await tryListen(address);
  if (state === null) return ok(name, 'free');
  if (state === 'EADDRINUSE' && isRunning) return ok(name, 'in use; a gateway is running');
  const how =
    state === 'EACCES' ? 'choose a port above 1023' : 'stop what listens there, or choose another with --listen';
  return missing(name, `cannot listen: ${state}`, how);
}

function tryListen(address: ListenAddress): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'it failed'));
    server.listen({ host: address.host, port: address.port, exclusive: true }, () => server.close(() => resolve(null)));
  });
}

function nearestExisting(path: string): string {
  let place = path;
  while (!existsSync(place) && dirname(place) !== place) place = dirname(place);
  return place;
}
