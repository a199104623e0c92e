/** An HTTPS (or HTTP) server on loopback for the protocols that real clients speak. */
import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TestCertificate } from '../../kit/certificates.ts';

export type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

export interface LocalServer {
  readonly port: number;
  /** `METHOD target` of each request, in order. */
  readonly seen: readonly string[];
  close(): Promise<void>;
}

/** Starts a server; `certificate` null = plain HTTP. */
export async function startServer(certificate: TestCertificate | null, handler: Handler): Promise<LocalServer> {
  const seen: string[] = [];
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    seen.push(`${request.method} ${request.url}`);
    Promise.resolve(handler(request, response)).catch((error: unknown) => response.destroy(error as Error));
  };
  const server =
    certificate === null
      ? createHttpServer(listener)
      : createHttpsServer({ cert: certificate.certPem, key: certificate.keyPem }, listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A listening TCP server has an AddressInfo; a string is only for pipes.
  const { port } = server.address() as AddressInfo;
  return {
    port,
    seen,
    close: async () => {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Answers with a body of a known length. */
export function send(response: ServerResponse, type: string, body: string | Buffer, status = 200): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, { 'content-type': type, 'content-length': bytes.length }).end(bytes);
}
