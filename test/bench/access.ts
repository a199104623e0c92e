/** How a client reaches a host through a target, and the one way to open such a connection. */
import { connect, type Socket } from 'node:net';
import { connect as connectTls, type SecureContext, type TLSSocket } from 'node:tls';

export type Access =
  /** TLS straight to the port; the target goes by SNI and Host, as a transparent proxy does. */
  | { readonly kind: 'sni'; readonly port: number; readonly hostPort: number; readonly caPem: string }
  /** CONNECT first. */
  | {
      readonly kind: 'connect';
      readonly port: number;
      /** The port named in CONNECT and, unless 443, in Host. */
      readonly hostPort: number;
      readonly caPem: string;
      /** Value of Proxy-Authorization, or null. */
      readonly proxyAuthorization: string | null;
    };

/** The target said no on CONNECT. */
export class ConnectRefused extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`CONNECT was answered ${status}`);
    this.status = status;
  }
}

const OPEN_TIMEOUT_MS = 20_000;
const MAX_CONNECT_HEAD_BYTES = 16 * 1024;

/** A TLS connection to `host` through the target, certificate verified. @throws ConnectRefused, Error */
export async function openConnection(access: Access, host: string, context: SecureContext): Promise<TLSSocket> {
  const socket = connect({ port: access.port, host: '127.0.0.1', noDelay: true });
  socket.setTimeout(OPEN_TIMEOUT_MS, () => socket.destroy(new Error('Cannot open connection: timeout')));
  try {
    await once(socket, 'connect');
    if (access.kind === 'connect') await tunnel(socket, access, host);
    const secure = connectTls({ socket, servername: host, secureContext: context });
    await once(secure, 'secureConnect');
    socket.setTimeout(0);
    return secure;
  } catch (cause) {
    socket.destroy();
    throw cause;
  }
}

async function tunnel(socket: Socket, access: Extract<Access, { kind: 'connect' }>, host: string): Promise<void> {
  const authority = `${host}:${access.hostPort}`;
  const auth = access.proxyAuthorization === null ? '' : `Proxy-Authorization: ${access.proxyAuthorization}\r\n`;
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${auth}\r\n`);
  const head = await readHead(socket);
  const status = Number(/^HTTP\/1\.[01] ([0-9]{3})/.exec(head)?.[1] ?? 0);
  if (status !== 200) throw new ConnectRefused(status);
}

function readHead(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let head = '';
    const done = (error: Error | null) => {
      socket.off('data', onData).off('error', done).off('close', onClose);
      // Not flowing while nobody listens: the TLS layer takes the handle over next.
      socket.pause();
      if (error === null) resolve(head);
      else reject(error);
    };
    const onClose = () => done(new Error('Cannot open connection: closed during CONNECT'));
    const onData = (chunk: Buffer) => {
      head += chunk.toString('latin1');
      if (head.includes('\r\n\r\n')) done(null);
      else if (head.length > MAX_CONNECT_HEAD_BYTES) done(new Error('Cannot open connection: CONNECT answer too long'));
    };
    socket.on('data', onData).on('error', done).on('close', onClose);
  });
}

function once(socket: Socket, event: 'connect' | 'secureConnect'): Promise<void> {
  return new Promise((resolve, reject) => {
    const ok = () => done(null);
    const fail = (error: Error) => done(error);
    const closed = () => done(new Error(`Cannot open connection: closed before ${event}`));
    const done = (error: Error | null) => {
      socket.off(event, ok).off('error', fail).off('close', closed);
      if (error === null) resolve();
      else reject(error);
    };
    socket.on(event, ok).on('error', fail).on('close', closed);
  });
}
