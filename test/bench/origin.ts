/** The origin of the bench, its own process: a TLS server with one fixed answer, as light as Node allows. */
import { createServer } from 'node:tls';
import { serve } from './worker.ts';
import { ORIGIN_BODY } from './workload.ts';

/** What the origin has seen so far: for checking that a target injects and that refused requests stay away. */
export interface OriginSeen {
  readonly requests: number;
  /** Head of the newest request. */
  readonly lastHead: string;
}

export interface OriginListen {
  readonly certPem: string;
  readonly keyPem: string;
}

const CR_LF_CR_LF = Buffer.from('\r\n\r\n');
const MAX_HEAD_BYTES = 16 * 1024;
const ANSWER = Buffer.from(
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${ORIGIN_BODY.length}\r\n\r\n${ORIGIN_BODY}`,
);

let requests = 0;
let lastHead: Buffer = Buffer.alloc(0);

serve({
  listen: (options: OriginListen) => listen(options),
  seen: (): OriginSeen => ({ requests, lastHead: lastHead.toString('latin1') }),
});

function listen(options: OriginListen): Promise<{ port: number }> {
  const server = createServer({ cert: options.certPem, key: options.keyPem, noDelay: true }, (socket) => {
    let held: Buffer | null = null;
    // The server's socket hands its bytes to push(); taking them there spares the stream machinery its cost per chunk.
    socket.push = (chunk: Buffer | null) => {
      if (chunk === null) {
        socket.end();
        return false;
      }
      const bytes: Buffer = held === null ? chunk : Buffer.concat([held, chunk]);
      held = null;
      // Requests here have no body and are never pipelined, so a head ends exactly at the end of a chunk.
      if (bytes.indexOf(CR_LF_CR_LF) !== bytes.length - CR_LF_CR_LF.length) {
        if (bytes.length > MAX_HEAD_BYTES) socket.destroy();
        held = bytes;
        return true;
      }
      requests++;
      lastHead = bytes;
      socket.write(ANSWER);
      return true;
    };
    socket.on('error', () => socket.destroy());
  });
  // A target that gives up a handshake is its own business; its check or its figures will show it.
  server.on('tlsClientError', () => {});
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', 1024, () => {
      const address = server.address();
      if (address === null || typeof address === 'string') reject(new Error('Cannot listen: no address'));
      else resolve({ port: address.port });
    });
  });
}
