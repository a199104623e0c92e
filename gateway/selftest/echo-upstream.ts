/** A TLS server on loopback that answers with what it was sent: how the demonstration sees both sides of the gateway. */
import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { InterceptionCa } from '../../vault/index.ts';

export interface EchoUpstream {
  readonly port: number;
  /** The authority that signed its certificate; ends with the process. */
  readonly caPem: string;
  /** Requests in the order they arrived. */
  readonly seen: readonly SeenRequest[];
  /** May be called twice. */
  close(): Promise<void>;
}

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
}

/** Starts it on a free port, with a certificate for `host`. */
export async function startEchoUpstream(host: string): Promise<EchoUpstream> {
  const ca = await InterceptionCa.create({ commonName: 'Sallyport demonstration' });
  const leaf = ca.leafFor(host);
  const seen: SeenRequest[] = [];
  const server = createServer({ cert: leaf.certPem, key: leaf.keyPem, minVersion: 'TLSv1.2' }, (request, response) => {
    const { method = '', url: path = '', headers } = request;
    if (seen.length < MAX_SEEN) seen.push({ method, path, headers });
    request.resume();
    // The credential comes back on purpose: the gateway has to take it out again.
    const body = JSON.stringify({ method, path, authorization: headers.authorization ?? null });
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
      .end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A TCP server that listens has an address of this form.
  const { port } = server.address() as AddressInfo;
  let closing: Promise<void> | null = null;
  const close = (): Promise<void> => {
    closing ??= new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
      ca.close();
    });
    return closing;
  };
  return { port, caPem: ca.certPem, seen, close };
}

// The demonstration sends five; nothing else knows this server.
const MAX_SEEN = 100;
