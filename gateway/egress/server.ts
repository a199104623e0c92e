/** The egress listeners: accepts, bounds, times out, revokes and drains connections. Start with `listen`, end with `close`. */
import { chmod, rm } from 'node:fs/promises';
import net from 'node:net';
import { GatewayError } from '../errors.ts';
import type { ListenAddress } from '../types.ts';
import type { Caller } from './callers.ts';
import type { EgressContext } from './context.ts';
import { hostPort } from './dialer.ts';
import { ProxyDialect } from './proxy-dialect.ts';
import { refusalResponse, refusals } from './refusal.ts';
import { Session } from './session.ts';
import { UNREAD, Wire } from './wire.ts';

/** How often deadlines are looked at: the grain of every time-out. */
export const SWEEP_MS = 250;

/** Pending connections the kernel keeps for us. */
const BACKLOG = 1024;

export class EgressServer {
  readonly #context: EgressContext;
  readonly #listeners = new Map<string, { readonly server: net.Server; readonly caller: Caller | null }>();
  readonly #sweeper: NodeJS.Timeout;
  #isClosed = false;

  constructor(context: EgressContext, tick: () => void) {
    this.#context = context;
    this.#sweeper = setInterval(() => {
      tick();
      this.#sweep();
    }, SWEEP_MS);
    this.#sweeper.unref();
  }

  /** Listens for callers with a proxy credential. @throws GatewayError `GATEWAY_LISTEN_FAILED` */
  async listen(address: ListenAddress): Promise<ListenAddress> {
    const server = this.#server(null);
    const bound = await listening(
      server,
      { host: address.host, port: address.port, backlog: BACKLOG },
      hostPort(address.host, address.port),
    );
    const actual = {
      host: address.host,
      port: typeof bound === 'object' && bound !== null ? bound.port : address.port,
    };
    this.#listeners.set(hostPort(actual.host, actual.port), { server, caller: null });
    return actual;
  }

  /** Listens on a Unix socket that belongs to one caller: whoever can open it is that caller. Mode 0660. */
  async listenUnix(path: string, caller: Caller): Promise<void> {
    await rm(path, { force: true }); // a socket file of an earlier run; the name is ours
    const server = this.#server(caller);
    await listening(server, { path, backlog: BACKLOG }, path);
    await chmod(path, 0o660);
    this.#listeners.set(path, { server, caller });
  }

  /** Ends what the newest policies no longer allow, and idle connections of generations that are gone. */
  revoke(isDead: (key: string) => boolean): void {
    for (const session of [...this.#context.sessions]) session.revoke();
    this.#context.pool.sweep(performance.now(), isDead);
  }

  /** Closes a caller's own sockets and cuts every connection of it. */
  async drop(caller: Caller): Promise<void> {
    const own = [...this.#listeners].filter(([, listener]) => listener.caller === caller);
    const closed = own.map(([name]) => this.#unlisten(name));
    // Before waiting: a listener is closed only when its last connection is.
    for (const session of [...this.#context.sessions]) if (session.caller === caller) session.destroy();
    await Promise.all(closed);
  }

  /** Graceful stop: no new connection or request; those under way get `drainMs`. Twice is safe. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const closed = [...this.#listeners.keys()].map((name) => this.#unlisten(name));
    for (const session of [...this.#context.sessions]) session.stop();
    const until = performance.now() + this.#context.limits.drainMs;
    while (this.#context.sessions.size > 0 && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    for (const session of [...this.#context.sessions]) session.destroy();
    this.#context.pool.close();
    clearInterval(this.#sweeper);
    await Promise.all(closed);
  }

  async #unlisten(name: string): Promise<void> {
    const listener = this.#listeners.get(name);
    this.#listeners.delete(name);
    if (listener !== undefined) await new Promise<void>((resolve) => listener.server.close(() => resolve()));
  }

  #server(caller: Caller | null): net.Server {
    const server = net.createServer({ noDelay: true, pauseOnConnect: false }, (socket) => this.#accept(socket, caller));
    // An accept that fails (no file descriptor left) must not end the process; the next one may succeed.
    server.on('error', (error) => this.#context.onFault('listener', error));
    return server;
  }

  #accept(socket: net.Socket, caller: Caller | null): void {
    const { stats, limits } = this.#context;
    stats.connections++;
    stats.openConnections++;
    socket.once('close', () => {
      stats.openConnections--;
      if (caller !== null) caller.connections--;
    });
    if (caller !== null) caller.connections++;
    const src = socket.remoteAddress === undefined ? 'unix' : hostPort(socket.remoteAddress, socket.remotePort ?? 0);
    const wire = new Wire(socket, UNREAD, this.#context.wireMode);
    if (
      stats.openConnections > limits.connections ||
      (caller !== null && caller.connections > limits.connectionsPerCaller)
    ) {
      wire.write(refusalResponse(refusals.tooManyConnections, this.#context.newId(), { close: true, head: false }));
      socket.destroySoon();
      return;
    }
    new Session(this.#context, wire, new ProxyDialect(this.#context, src, caller));
  }

  #sweep(): void {
    const now = performance.now();
    for (const timed of [...this.#context.timed]) if (timed.deadline < now) timed.onDeadline();
    this.#context.pool.sweep(now);
  }
}

function listening(
  server: net.Server,
  options: net.ListenOptions,
  name: string,
): Promise<ReturnType<net.Server['address']>> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error) => {
      reject(new GatewayError('GATEWAY_LISTEN_FAILED', `Cannot listen on ${name}: ${error.message}`, { cause: error }));
    };
    server.once('error', onError);
    server.listen(options, () => {
      server.off('error', onError);
      resolve(server.address());
    });
  });
}
