/** The self-test's own server: TLS under a throwaway authority, and it remembers what reached it. */
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { InterceptionCa } from '../../vault/index.ts';

export interface Seen {
  readonly host: string;
  readonly path: string;
  readonly authorization: string;
}

export interface CanaryUpstream {
  readonly port: number;
  /** The only authority its certificate chains to. */
  readonly caPem: string;
  /** Requests received since the last call. */
  takeSeen(): Seen[];
  close(): Promise<void>;
}

/** Requests remembered: a run makes about ten; only a broken gate would bring more. */
const MAX_SEEN = 64;

/** Answers every request with the Authorization it got: what a careless upstream might echo. */
export async function startCanaryUpstream(hosts: readonly string[]): Promise<CanaryUpstream> {
  const authority = await InterceptionCa.create({ commonName: 'Sallyport self-test' });
  const seen: Seen[] = [];
  const SNICallback: https.ServerOptions['SNICallback'] = (name, done) => {
    done(null, hosts.includes(name) ? authority.secureContextFor(name) : undefined);
  };
  const server = https.createServer({ SNICallback }, (request, response) => {
    const authorization = request.headers.authorization ?? '';
    if (seen.length < MAX_SEEN) seen.push({ host: request.headers.host ?? '', path: request.url ?? '', authorization });
    response.end(JSON.stringify({ authorization }));
  });
  server.unref();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port, // a TCP server that listens has an AddressInfo
    caPem: authority.certPem,
    takeSeen: () => seen.splice(0),
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
