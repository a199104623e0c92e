/** Scripts for {@link startUpstream}: the honest answers and the hostile ones. */
import { createHash } from 'node:crypto';
import type { Reply, SeenRequest, Wire } from './upstream.ts';

/** What {@link echo} answers, as JSON. */
export interface Echo {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly bodyBytes: number;
  readonly bodySha256: string;
  readonly connection: number;
}

/** Answers with JSON of what the upstream saw. */
export function echo(request: SeenRequest, wire: Wire): void {
  const seen: Echo = {
    method: request.method,
    target: request.target,
    headers: request.headers,
    bodyBytes: request.body.length,
    bodySha256: createHash('sha256').update(request.body).digest('hex'),
    connection: request.connection,
  };
  const body = Buffer.from(JSON.stringify(seen));
  wire.write(head(200, { 'content-type': 'application/json', 'content-length': String(body.length) }));
  if (request.method !== 'HEAD') wire.write(body);
}

/** Answers with these values and a right Content-Length. */
export function respond(options: {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}): Reply {
  const body = Buffer.from(options.body ?? '');
  const lines = head(options.status ?? 200, { ...options.headers, 'content-length': String(body.length) });
  return (request, wire) => {
    wire.write(lines);
    if (request.method !== 'HEAD') wire.write(body);
  };
}

/** Answers with exactly these bytes, then leaves the connection as it is or closes it. */
export function rawReply(bytes: string | Buffer, then: 'keep' | 'close' = 'keep'): Reply {
  return (_request, wire) => {
    wire.write(bytes);
    if (then === 'close') wire.end();
  };
}

/**
 * Answers with exactly these bytes and resets the connection when the test says so.
 * Read the bytes first: a reset that arrives together with them looks like an ordinary end to the reader.
 */
export function resettable(bytes: string | Buffer): { readonly reply: Reply; reset(): void } {
  const wires = new Set<Wire>();
  return {
    reply: async (_request, wire) => {
      wires.add(wire);
      wire.write(bytes);
      await wire.closed;
      wires.delete(wire);
    },
    reset: () => {
      for (const wire of wires) wire.reset();
    },
  };
}

/** Answers with chunked coding, one chunk a part. */
export function chunked(parts: readonly string[], trailers: Readonly<Record<string, string>> = {}): Reply {
  return (_request, wire) => {
    wire.write(head(200, { 'transfer-encoding': 'chunked' }));
    for (const part of parts) wire.write(chunk(part));
    wire.write(`0\r\n${lines(trailers)}\r\n`);
  };
}

/** Answers without any framing: the end of the connection ends the body. */
export function closeDelimited(body: string): Reply {
  return (_request, wire) => {
    wire.write(head(200, { connection: 'close' }));
    wire.end(body);
  };
}

/** Sends interim answers before the final reply. */
export function afterInterim(statuses: readonly number[], final: Reply): Reply {
  return (request, wire) => {
    for (const status of statuses) wire.write(head(status, { 'x-interim': String(status) }));
    return final(request, wire);
  };
}

/** Takes the request and never answers. */
export function silent(_request: SeenRequest, wire: Wire): Promise<void> {
  return wire.closed;
}

/** A stream of server-sent events that the test releases one by one. */
export interface EventStream {
  readonly reply: Reply;
  /** Sends one event to every open stream. */
  release(data: string): void;
  /** Ends every open stream. */
  end(): void;
  /** Streams open now. */
  readonly open: number;
  /** Resolves when the next stream that is open now is closed by the other side or by `end`. */
  closed(): Promise<void>;
}

/** Makes an event stream; with `events` chunked framing, as common servers do. */
export function eventStream(): EventStream {
  const wires = new Set<Wire>();
  return {
    reply: async (_request, wire) => {
      wires.add(wire);
      wire.write(head(200, { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' }));
      await wire.closed;
      wires.delete(wire);
    },
    release: (data) => {
      for (const wire of wires) wire.write(chunk(`data: ${data}\n\n`));
    },
    end: () => {
      for (const wire of wires) wire.end('0\r\n\r\n');
    },
    get open() {
      return wires.size;
    },
    closed: async () => {
      await Promise.race([...wires].map((wire) => wire.closed));
    },
  };
}

/** Holds a reply back until `open()` is called. */
export function gated(reply: Reply): { readonly reply: Reply; open(): void } {
  let open: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  return {
    reply: async (request, wire) => {
      await gate;
      await reply(request, wire);
    },
    open: () => open(),
  };
}

/** A response head with its empty line. */
export function head(status: number, headers: Readonly<Record<string, string>>): string {
  return `HTTP/1.1 ${status} ${status < 200 ? 'Interim' : 'Test'}\r\n${lines(headers)}\r\n`;
}

/** One chunk of chunked coding. */
export function chunk(data: string | Buffer): Buffer {
  const bytes = Buffer.from(data);
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
}

function lines(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
}
