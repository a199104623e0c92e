/** A caller as small as can be: CONNECT, TLS and one request by hand, so that it can also do what no library would. */
import { once } from 'node:events';
import { type IncomingMessage, type RequestOptions, request } from 'node:http';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export interface DemoClient {
  /** `http://id:token@host:port` */
  readonly proxyUrl: string;
  /** PEM: whom it trusts. */
  readonly ca: string;
}

export interface DemoAnswer {
  readonly status: number;
  readonly body: string;
  readonly requestId: string | null;
}

/** An answer, or how the connection ended without one. */
export type DemoOutcome = { readonly answer: DemoAnswer } | { readonly ended: string };

/** `GET https://host/path` through the proxy's tunnel; `sni` is the name told in the TLS handshake, normally `host`. */
export async function getThroughTunnel(
  client: DemoClient,
  target: { readonly host: string; readonly path: string; readonly sni?: string },
): Promise<DemoOutcome> {
  const tunnel = await openTunnel(client, target.host);
  if ('refused' in tunnel) return { answer: tunnel.refused };
  const tls = connectTls({ socket: tunnel.socket, servername: target.sni ?? target.host, ca: client.ca });
  try {
    await once(tls, 'secureConnect', { signal: AbortSignal.timeout(STEP_MS) });
    const answer = await exchange({ path: target.path, headers: { host: target.host } }, () => tls);
    return { answer };
  } catch (error) {
    return { ended: error instanceof Error && 'code' in error ? String(error.code) : 'the connection was closed' };
  } finally {
    tls.destroy();
    tunnel.socket.destroy();
  }
}

/** `GET http://…` in absolute form, as a client without TLS asks a proxy. */
export async function getAbsolute(client: DemoClient, url: string): Promise<DemoOutcome> {
  const socket = await openProxy(client);
  try {
    const headers = { host: new URL(url).host, 'proxy-authorization': credentials(client) };
    return { answer: await exchange({ path: url, headers }, () => socket) };
  } catch (error) {
    return { ended: error instanceof Error && 'code' in error ? String(error.code) : 'the connection was closed' };
  } finally {
    socket.destroy();
  }
}

// Everything is on this machine; a step that takes this long will not end.
const STEP_MS = 10_000;
const MAX_BODY_BYTES = 64 * 1024;

type Tunnel = { readonly socket: Socket } | { readonly refused: DemoAnswer };

async function openTunnel(client: DemoClient, host: string): Promise<Tunnel> {
  const socket = await openProxy(client);
  const asked = request({
    method: 'CONNECT',
    path: `${host}:443`,
    headers: { host: `${host}:443`, 'proxy-authorization': credentials(client) },
    createConnection: () => socket,
    signal: AbortSignal.timeout(STEP_MS),
  });
  return new Promise((resolve, reject) => {
    asked.once('error', reject);
    asked.once('connect', (answer, tunnel: Socket, head) => {
      if (answer.statusCode === 200) return resolve({ socket: tunnel });
      tunnel.destroy();
      return resolve({ refused: answerOf(answer, head.toString()) });
    });
    asked.end();
  });
}

async function openProxy(client: DemoClient): Promise<Socket> {
  const { hostname, port } = new URL(client.proxyUrl);
  const socket = connectTcp({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) });
  // Later errors come through whoever reads from it.
  socket.on('error', () => {});
  await once(socket, 'connect', { signal: AbortSignal.timeout(STEP_MS) });
  return socket;
}

function credentials(client: DemoClient): string {
  const { username, password } = new URL(client.proxyUrl);
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

function exchange(options: RequestOptions, createConnection: () => Socket): Promise<DemoAnswer> {
  return new Promise((resolve, reject) => {
    const asked = request({ ...options, createConnection, signal: AbortSignal.timeout(STEP_MS) });
    asked.once('error', reject);
    asked.once('response', (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > MAX_BODY_BYTES) response.destroy(new Error('Cannot read the answer: too long'));
        else chunks.push(chunk);
      });
      response.once('error', reject);
      response.once('end', () => resolve(answerOf(response, Buffer.concat(chunks).toString())));
    });
    asked.end();
  });
}

function answerOf(response: IncomingMessage, body: string): DemoAnswer {
  const requestId = response.headers['x-sallyport-request-id'];
  return { status: response.statusCode ?? 0, body, requestId: typeof requestId === 'string' ? requestId : null };
}
