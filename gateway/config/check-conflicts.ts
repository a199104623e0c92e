/** What no single value shows: duplicates, keys that exclude each other, listeners open to the network. */
import type { GatewayConfig, ListenAddress } from '../types.ts';
import type { ConfigDocument } from './config-shape.ts';
import type { Report } from './shape.ts';

/** Reports conflicts of a document whose values are each right by themselves. */
export function checkConflicts(document: ConfigDocument, config: GatewayConfig, report: Report): void {
  checkVault(document, report);
  checkListeners(config, report);
  checkUpstreams(config, report);
  checkCallers(config, report);
  checkSockets(config, report);
}

// sun_path of Linux holds 108 bytes with its closing zero (unix(7)); a longer path would be cut silently by some libraries.
const MAX_SOCKET_PATH_BYTES = 107;

function checkVault(document: ConfigDocument, report: Report): void {
  if (document.vault?.key === undefined || document.vault.passphrase === undefined) return;
  report(['vault', 'passphrase'], {
    code: 'CONFIG_CONFLICT',
    message: 'the vault opens with a key or with a passphrase, not with both',
    atKey: true,
  });
}

function checkListeners(config: GatewayConfig, report: Report): void {
  if (config.proxy.listen.length === 0) {
    report(['proxy', 'listen'], { code: 'CONFIG_VALUE', message: 'expected at least one address' });
  }
  const seen = new Set<string>();
  config.proxy.listen.forEach((address, index) => {
    const key = `${address.host}:${address.port}`;
    if (address.port !== 0 && seen.has(key)) {
      report(['proxy', 'listen', index], { code: 'CONFIG_CONFLICT', message: 'this address is listed twice' });
    }
    seen.add(key);
    if (!isLoopback(address))
      report(['proxy', 'listen', index], exposed('anyone who reaches it can try proxy credentials'));
  });
  const api = config.api.listen;
  if (api === null) return;
  if (api.port !== 0 && seen.has(`${api.host}:${api.port}`)) {
    report(['api', 'listen'], { code: 'CONFIG_CONFLICT', message: 'the proxy listens on this address already' });
  }
  if (!isLoopback(api)) report(['api', 'listen'], exposed('health and metrics are served there without a key'));
}

function exposed(consequence: string) {
  return {
    code: 'CONFIG_EXPOSED',
    message: `this listener is open to the network: ${consequence}`,
    hint: 'listen on 127.0.0.1 unless other hosts must reach it',
  } as const;
}

function checkUpstreams(config: GatewayConfig, report: Report): void {
  const seen = new Set<string>();
  config.upstreams.forEach((upstream, index) => {
    if (seen.has(upstream.name)) {
      report(['upstreams', index, 'name'], { code: 'CONFIG_CONFLICT', message: 'this name is pinned twice' });
    }
    seen.add(upstream.name);
  });
}

function checkCallers(config: GatewayConfig, report: Report): void {
  const seen = new Set<string>();
  config.callers.forEach((caller, index) => {
    if (seen.has(caller.id)) {
      report(['callers', index, 'id'], { code: 'CONFIG_CONFLICT', message: 'this id is taken by an earlier caller' });
    }
    seen.add(caller.id);
    if (caller.token !== null || caller.socket !== null) return;
    report(['callers', index], {
      code: 'CONFIG_VALUE',
      message: 'a caller needs a `token` or a `socket`: without either nothing could be told to be it',
    });
  });
}

/** Every Unix socket has its own path that fits. Two callers on one socket would share one identity. */
function checkSockets(config: GatewayConfig, report: Report): void {
  const seen = new Set([config.api.socket]);
  checkLength(config.api.socket, ['api', 'socket'], report);
  config.callers.forEach((caller, index) => {
    if (caller.socket === null) return;
    const path = ['callers', index, 'socket'];
    checkLength(caller.socket, path, report);
    if (seen.has(caller.socket)) report(path, { code: 'CONFIG_CONFLICT', message: 'this socket path is taken' });
    seen.add(caller.socket);
  });
}

function checkLength(socket: string, path: readonly (string | number)[], report: Report): void {
  if (Buffer.byteLength(socket) <= MAX_SOCKET_PATH_BYTES) return;
  report(path, {
    code: 'CONFIG_VALUE',
    message: `the socket path is longer than ${MAX_SOCKET_PATH_BYTES} bytes`,
    hint: 'choose a shorter home or set a shorter path',
  });
}

function isLoopback(address: ListenAddress): boolean {
  return address.host === '::1' || /^127\./.test(address.host);
}
