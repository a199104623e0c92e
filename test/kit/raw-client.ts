/** A client that sends exactly the bytes it is told to and reads exactly what comes back. */
import { type Socket, connect as tcpConnect } from 'node:net';
import { type ConnectionOptions, connect as tlsConnect } from 'node:tls';
import { type HeaderLines, type MessageHead, readBody, readHead, responseFraming, statusOf } from './http-message.ts';
import { defaultDeadlineMs } from './upstream.ts';

/** Where to connect: a loopback port or a Unix socket. */
export type Endpoint = { readonly port: number; readonly host?: string } | { readonly path: string };

export interface RawResponse {
  readonly status: number;
  readonly headers: HeaderLines;
  readonly body: Buffer;
  /** The head with its empty line, byte for byte (Latin-1). */
  readonly rawHead: string;
}

export interface TunnelTls {
  /** SNI; null sends none. */
  readonly servername: string | null;
  /** CA that must have signed the leaf; absent = nothing is checked. */
  readonly ca?: string;
  readonly alpn?: readonly string[];
  readonly options?: ConnectionOptions;
}

/** Opens a connection. */
export async function connectRaw(to: Endpoint): Promise<RawConnection> {
  const socket = 'path' in to ? tcpConnect(to.path) : tcpConnect(to.port, to.host ?? '127.0.0.1');
  await settled(socket, 'connect');
  return new RawConnection(socket);
}

/** One socket with a read buffer. Every read has a deadline; a late answer is an error, never a hang. */
export class RawConnection {
  readonly socket: Socket;
  readonly deadlineMs: number;
  #buffer: Buffer = Buffer.alloc(0);
  #isEnded = false;
  #error: NodeJS.ErrnoException | null = null;
  #wake: (() => void) | null = null;

  constructor(socket: Socket, deadlineMs = defaultDeadlineMs) {
    this.socket = socket;
    this.deadlineMs = deadlineMs;
    socket.on('data', this.#onData);
    socket.on('end', this.#onEnd);
    socket.on('close', this.#onEnd);
    socket.on('error', this.#onError);
  }

  /** What broke the connection, if anything did. */
  get error(): NodeJS.ErrnoException | null {
    return this.#error;
  }

  write(bytes: string | Buffer): void {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  }

  /** Writes and waits until the system has the bytes: closing right after a write may drop what is still queued. */
  async send(bytes: string | Buffer): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes, (error) =>
        error ? reject(error) : resolve(),
      );
    });
  }

  /** The next response head; interim (1xx) heads are returned like any other. */
  async readHead(): Promise<MessageHead> {
    for (;;) {
      const head = readHead(this.#buffer);
      if (head !== null) {
        this.#buffer = this.#buffer.subarray(head.sizeBytes);
        return head;
      }
      if (this.#isEnded) throw this.#failure('a response head');
      await this.#more('a response head');
    }
  }

  /** The next final response with its body. `method` is what was asked: HEAD and CONNECT have no body. */
  async readResponse(method = 'GET'): Promise<RawResponse> {
    let head = await this.readHead();
    while (statusOf(head) < 200 && statusOf(head) >= 100 && statusOf(head) !== 101) head = await this.readHead();
    const framing = responseFraming(head, method);
    for (;;) {
      const read = readBody(this.#buffer, framing, this.#isEnded);
      if (read !== null) {
        this.#buffer = this.#buffer.subarray(read.sizeBytes);
        return { status: statusOf(head), headers: head.headers, body: read.body, rawHead: head.raw };
      }
      if (this.#isEnded) throw this.#failure('a response body');
      await this.#more('a response body');
    }
  }

  /** Bytes until `text` has come, it included. */
  async readUntil(text: string): Promise<string> {
    for (;;) {
      const at = this.#buffer.indexOf(text, 0, 'latin1');
      if (at >= 0) {
        const taken = this.#buffer.toString('latin1', 0, at + text.length);
        this.#buffer = this.#buffer.subarray(at + text.length);
        return taken;
      }
      if (this.#isEnded) throw this.#failure(JSON.stringify(text));
      await this.#more(JSON.stringify(text));
    }
  }

  /** Everything until the other side closes or resets. */
  async readToClose(): Promise<Buffer> {
    while (!this.#isEnded) await this.#more('the end');
    const rest = this.#buffer;
    this.#buffer = Buffer.alloc(0);
    return rest;
  }

  /** Sends and reads one response. */
  async ask(bytes: string | Buffer, method = 'GET'): Promise<RawResponse> {
    this.write(bytes);
    return this.readResponse(method);
  }

  /** Starts TLS on this connection; it must not be used directly afterwards. Rejects when the handshake fails. */
  async startTls(tls: TunnelTls): Promise<RawConnection> {
    const left = this.#release();
    if (left.length > 0) this.socket.unshift(left);
    const inner = tlsConnect({
      socket: this.socket,
      rejectUnauthorized: tls.ca !== undefined,
      // Tests that send another name than they check set both; Node checks the host name against `servername`.
      ...(tls.servername === null ? { checkServerIdentity: () => undefined } : { servername: tls.servername }),
      ...(tls.ca === undefined ? {} : { ca: tls.ca }),
      ...(tls.alpn === undefined ? {} : { ALPNProtocols: [...tls.alpn] }),
      ...tls.options,
    });
    await settled(inner, 'secureConnect');
    return new RawConnection(inner, this.deadlineMs);
  }

  close(): void {
    this.socket.destroy();
  }

  #onData = (chunk: Buffer): void => {
    this.#buffer = Buffer.concat([this.#buffer, chunk]);
    this.#wake?.();
  };

  #onEnd = (): void => {
    this.#isEnded = true;
    this.#wake?.();
  };

  #onError = (error: NodeJS.ErrnoException): void => {
    this.#error = error;
    this.#isEnded = true;
    this.#wake?.();
  };

  #release(): Buffer {
    this.socket.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onEnd).off('error', this.#onError);
    // From here on the TLS socket on top reports what breaks.
    this.socket.on('error', () => {});
    this.socket.pause();
    const left = this.#buffer;
    this.#buffer = Buffer.alloc(0);
    return left;
  }

  async #more(what: string): Promise<void> {
    const isInTime = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), this.deadlineMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
    this.#wake = null;
    if (!isInTime) throw new Error(`no ${what} within ${this.deadlineMs} ms; have ${JSON.stringify(this.#text())}`);
  }

  #failure(what: string): Error {
    return new Error(`connection ended before ${what}; have ${JSON.stringify(this.#text())}`, { cause: this.#error });
  }

  #text(): string {
    return this.#buffer.toString('latin1', 0, 400);
  }
}

/** The `Proxy-Authorization` line of a caller. */
export function proxyAuthorization(id: string, token: string): string {
  return `Proxy-Authorization: Basic ${Buffer.from(`${id}:${token}`).toString('base64')}\r\n`;
}

/** Sends CONNECT for `authority` and reads the answer. `extra` is further header lines with CRLF. */
export function askTunnel(connection: RawConnection, authority: string, extra = ''): Promise<RawResponse> {
  return connection.ask(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${extra}\r\n`, 'CONNECT');
}

async function settled(socket: Socket, event: 'connect' | 'secureConnect'): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => fail(new Error(`no ${event} within ${defaultDeadlineMs} ms`)), defaultDeadlineMs);
    const fail = (error: Error): void => {
      clearTimeout(timer);
      socket.destroy();
      reject(error);
    };
    const closed = (): void => fail(new Error(`closed before ${event}`));
    socket.once('error', fail);
    socket.once('close', closed);
    socket.once(event, () => {
      clearTimeout(timer);
      socket.off('error', fail).off('close', closed);
      resolve();
    });
  });
}
