/** An origin server for tests: TLS or plaintext on loopback, keeps every byte it got, answers by script. */
import { once } from 'node:events';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket, type TlsOptions } from 'node:tls';
import { type HeaderLines, header, readBody, readHead, requestFraming } from './http-message.ts';
import { echo } from './replies.ts';

/** One request as it came over the wire. */
export interface SeenRequest {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly headers: HeaderLines;
  /** The head with its empty line, byte for byte (Latin-1). */
  readonly rawHead: string;
  /** Decoded body. */
  readonly body: Buffer;
  /** The body with its framing, byte for byte. */
  readonly rawBody: Buffer;
  /** Which connection of this upstream carried it, from 0. */
  readonly connection: number;
  /** Name the client asked for in TLS; null without one. */
  readonly sni: string | null;
}

/** The way back to the client, bytes unchecked. */
export interface Wire {
  readonly isOpen: boolean;
  write(bytes: string | Buffer): void;
  /** Sends what is queued, then closes the sending side. */
  end(bytes?: string | Buffer): void;
  /** Breaks the TCP connection with RST. */
  reset(): void;
  /** Settles when the connection is gone, whoever closed it. */
  readonly closed: Promise<void>;
}

/** Answers one request. The next request of the connection is read when it settles. */
export type Reply = (request: SeenRequest, wire: Wire) => void | Promise<void>;

export interface UpstreamOptions {
  /** Key, certificate, versions …; absent = plaintext. */
  readonly tls?: TlsOptions;
  /** Answer for paths without a route of their own; default {@link echo}. */
  readonly reply?: Reply;
  /** Answers by path (the target up to `?`). */
  readonly routes?: Readonly<Record<string, Reply>>;
}

export interface Upstream {
  readonly port: number;
  /** Requests read to their end, in the order their heads came. */
  readonly requests: readonly SeenRequest[];
  /** TCP connections accepted so far. */
  readonly connections: number;
  /** TCP connections open now. */
  readonly openConnections: number;
  /** Application bytes received so far, over all connections, complete requests or not. */
  readonly receivedBytes: number;
  /** Handshakes that failed, by OpenSSL or Node error code. */
  readonly handshakeErrors: readonly string[];
  route(path: string, reply: Reply): void;
  /** Resolves when `count` requests in all have come. */
  requestsReached(count: number, deadlineMs?: number): Promise<void>;
  /** Forgets requests and byte counts; connections stay open. */
  clear(): void;
  close(): Promise<void>;
}

/** Longest a test waits for something that should come at once; generous because cores may be busy. */
export const defaultDeadlineMs = 15_000;

/** Starts an upstream on a free loopback port. */
export async function startUpstream(options: UpstreamOptions = {}): Promise<Upstream> {
  const state = new UpstreamState(options);
  const server: Server = options.tls === undefined ? createTcpServer() : createTlsServer(options.tls);
  server.on('connection', (socket: Socket) => state.track(socket));
  if (options.tls === undefined) {
    server.on('connection', (socket: Socket) => state.serve(socket));
  } else {
    server.on('secureConnection', (socket: TLSSocket) => state.serve(socket));
    server.on('tlsClientError', (error: NodeJS.ErrnoException) =>
      state.handshakeErrors.push(error.code ?? error.message),
    );
  }
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A listening TCP server has an AddressInfo; a string is only for pipes.
  state.port = (server.address() as AddressInfo).port;
  state.stop = () => new Promise((resolve) => server.close(() => resolve()));
  return state;
}

class UpstreamState implements Upstream {
  port = 0;
  requests: SeenRequest[] = [];
  connections = 0;
  receivedBytes = 0;
  handshakeErrors: string[] = [];
  stop: () => Promise<void> = async () => {};
  readonly #routes: Map<string, Reply>;
  readonly #fallback: Reply;
  readonly #sockets = new Map<number, Socket>();
  readonly #waiters = new Set<() => void>();
  #served = 0;
  #isClosed = false;

  constructor(options: UpstreamOptions) {
    this.#routes = new Map(Object.entries(options.routes ?? {}));
    this.#fallback = options.reply ?? echo;
  }

  get openConnections(): number {
    return this.#sockets.size;
  }

  track(socket: Socket): void {
    this.connections += 1;
    const port = socket.remotePort ?? 0;
    this.#sockets.set(port, socket);
    socket.on('close', () => {
      if (this.#sockets.get(port) === socket) this.#sockets.delete(port);
    });
    // A client that resets is what some tests want to see; the request list tells what had come.
    socket.on('error', () => socket.destroy());
  }

  serve(socket: Socket | TLSSocket): void {
    const index = this.#served;
    this.#served += 1;
    const sni = 'servername' in socket && typeof socket.servername === 'string' ? socket.servername : null;
    // Only the TCP socket under a TLS one can send RST; the peer's port tells which it is.
    const raw = this.#sockets.get(socket.remotePort ?? 0) ?? socket;
    const wire = wireOf(socket, raw);
    let pending: Buffer = Buffer.alloc(0);
    let isBusy = false;
    let isContinued = false;
    const pump = async (): Promise<void> => {
      if (isBusy) return;
      isBusy = true;
      for (let taken = takeRequest(pending, index, sni); taken !== null; taken = takeRequest(pending, index, sni)) {
        pending = pending.subarray(taken.sizeBytes);
        isContinued = false;
        this.#record(taken.request);
        await this.#replyTo(taken.request)(taken.request, wire);
      }
      isBusy = false;
    };
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk: Buffer) => {
      this.receivedBytes += chunk.length;
      pending = Buffer.concat([pending, chunk]);
      if (!isContinued && !isBusy && expectsContinue(pending)) {
        isContinued = true;
        wire.write('HTTP/1.1 100 Continue\r\n\r\n');
      }
      void pump();
    });
  }

  route(path: string, reply: Reply): void {
    this.#routes.set(path, reply);
  }

  async requestsReached(count: number, deadlineMs = defaultDeadlineMs): Promise<void> {
    const deadline = AbortSignal.timeout(deadlineMs);
    while (this.requests.length < count) {
      await new Promise<void>((resolve, reject) => {
        this.#waiters.add(resolve);
        deadline.addEventListener('abort', () =>
          reject(new Error(`upstream got ${this.requests.length} of ${count} requests within ${deadlineMs} ms`)),
        );
      });
    }
  }

  clear(): void {
    this.requests = [];
    this.receivedBytes = 0;
    this.handshakeErrors = [];
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const stopped = this.stop();
    for (const socket of this.#sockets.values()) socket.destroy();
    await stopped;
  }

  #replyTo(request: SeenRequest): Reply {
    return this.#routes.get(request.target.split('?')[0] ?? '') ?? this.#fallback;
  }

  #record(request: SeenRequest): void {
    this.requests.push(request);
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const wake of waiters) wake();
  }
}

function takeRequest(
  bytes: Buffer,
  connection: number,
  sni: string | null,
): { request: SeenRequest; sizeBytes: number } | null {
  const head = readHead(bytes);
  if (head === null) return null;
  const rest = bytes.subarray(head.sizeBytes);
  const body = readBody(rest, requestFraming(head), false);
  if (body === null) return null;
  const [method = '', target = '', version = ''] = head.start.split(' ');
  const request = {
    method,
    target,
    version,
    headers: head.headers,
    rawHead: head.raw,
    body: body.body,
    rawBody: Buffer.from(rest.subarray(0, body.sizeBytes)),
    connection,
    sni,
  };
  return { request, sizeBytes: head.sizeBytes + body.sizeBytes };
}

/** A head without its body that waits for the word (RFC 9110 section 10.1.1). */
function expectsContinue(bytes: Buffer): boolean {
  const head = readHead(bytes);
  if (head === null || header(head.headers, 'expect')?.toLowerCase() !== '100-continue') return false;
  return readBody(bytes.subarray(head.sizeBytes), requestFraming(head), false) === null;
}

function wireOf(socket: Socket | TLSSocket, raw: Socket): Wire {
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  return {
    get isOpen() {
      return !socket.destroyed && socket.writable;
    },
    write: (bytes) => {
      if (socket.writable) socket.write(asBytes(bytes));
    },
    end: (bytes) => {
      if (socket.writable) socket.end(asBytes(bytes ?? ''));
    },
    reset: () => {
      raw.resetAndDestroy();
    },
    closed,
  };
}

function asBytes(bytes: string | Buffer): Buffer {
  return typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes;
}
