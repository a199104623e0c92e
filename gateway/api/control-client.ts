/** Speaks to a running gateway through its control socket. */
import { Client } from 'undici';
import { GatewayError } from '../errors.ts';
import type { AttachedSandbox, GatewayStatus, ReloadReport, SelftestReport } from './types.ts';

/**
 * The gateway behind a control socket. Every call throws GatewayError: `GATEWAY_NOT_RUNNING` when nobody listens,
 * `GATEWAY_CONTROL_FAILED` when it refuses, fails or does not answer in time.
 */
export interface ControlClient {
  status(): Promise<GatewayStatus>;
  reload(): Promise<ReloadReport>;
  selftest(): Promise<SelftestReport>;
  metrics(): Promise<string>;
  attach(options: { policy: string; labels: Record<string, string>; socket?: boolean }): Promise<AttachedSandbox>;
  /** False when there is no such sandbox. */
  detach(id: string): Promise<boolean>;
  close(): Promise<void>;
}

export function controlClient(socketPath: string): ControlClient {
  const client = new Client('http://sallyport', {
    connect: { socketPath, timeout: CONNECT_TIMEOUT_MS },
    maxResponseSize: MAX_ANSWER_BYTES,
    headersTimeout: SLOW_CALL_MS,
    bodyTimeout: CALL_MS,
  });
  // The far end is our own gateway of the same version behind a socket only its owner opens: its JSON has the declared shape.
  const json = async <T>(call: Call): Promise<T> => JSON.parse((await send(client, socketPath, call)).body) as T;
  return {
    status: () => json({ method: 'GET', path: '/admin/v1/status' }),
    reload: () => json({ method: 'POST', path: '/admin/v1/reload', timeoutMs: SLOW_CALL_MS, alsoOk: 409 }),
    selftest: () => json({ method: 'POST', path: '/admin/v1/selftest', timeoutMs: SLOW_CALL_MS, alsoOk: 409 }),
    metrics: async () => (await send(client, socketPath, { method: 'GET', path: '/metrics' })).body,
    attach: (options) => json({ method: 'POST', path: '/admin/v1/sandboxes', body: options }),
    async detach(id) {
      const path = `/admin/v1/sandboxes/${encodeURIComponent(id)}`;
      return (await send(client, socketPath, { method: 'DELETE', path, alsoOk: 404 })).status !== 404;
    },
    close: () => (client.destroyed ? Promise.resolve() : client.destroy()),
  };
}

interface Call {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
  readonly timeoutMs?: number;
  /** A status that is an answer too, beside 2xx. */
  readonly alsoOk?: number;
}

const CONNECT_TIMEOUT_MS = 2_000;
const CALL_MS = 10_000;
// Reload opens every secret, the self-test makes real connections.
const SLOW_CALL_MS = 60_000;
// Metrics of a thousand policies stay far below.
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

async function send(client: Client, socketPath: string, call: Call): Promise<{ status: number; body: string }> {
  const payload = call.body === undefined ? null : JSON.stringify(call.body);
  try {
    const { statusCode, body } = await client.request({
      method: call.method,
      path: call.path,
      signal: AbortSignal.timeout(call.timeoutMs ?? CALL_MS),
      ...(payload === null ? {} : { body: payload, headers: { 'content-type': 'application/json' } }),
    });
    const text = await body.text();
    if ((statusCode >= 200 && statusCode < 300) || statusCode === call.alsoOk)
      return { status: statusCode, body: text };
    throw new GatewayError(
      'GATEWAY_CONTROL_FAILED',
      `Cannot ${call.method} ${call.path}: ${reasonOf(text, statusCode)}`,
    );
  } catch (error) {
    throw asGatewayError(error, socketPath, call);
  }
}

function asGatewayError(error: unknown, socketPath: string, call: Call): GatewayError {
  if (error instanceof GatewayError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ENOENT' || code === 'ECONNREFUSED') {
    const message = `Cannot reach the gateway at ${socketPath}: none is running`;
    return new GatewayError('GATEWAY_NOT_RUNNING', message, { cause: error });
  }
  const state =
    error instanceof Error && error.name === 'TimeoutError' ? 'no answer in time' : code || 'the call failed';
  return new GatewayError('GATEWAY_CONTROL_FAILED', `Cannot ${call.method} ${call.path}: ${state}`, { cause: error });
}

function reasonOf(text: string, status: number): string {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null && 'error' in parsed) {
      const { error } = parsed;
      if (typeof error === 'object' && error !== null && 'message' in error && 'code' in error) {
        return `${String(error.message)} (${String(error.code)})`;
      }
    }
  } catch {
    // Not JSON: the status is all there is to say.
  }
  return `HTTP ${status}`;
}
