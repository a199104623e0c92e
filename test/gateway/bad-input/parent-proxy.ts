/** A proxy that stands for the internet: it notes every address it is asked for and connects all of them to one loopback port. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface ParentProxy {
  readonly port: number;
  /** `address:port` of each CONNECT, in order. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

export async function startParentProxy(target: number): Promise<ParentProxy> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    sockets.add(client);
    client.on('error', () => client.destroy());
    client.once('data', (bytes) => {
      asked.push(bytes.toString('latin1').split(' ')[1] ?? '');
      const upstream = connect(target, '127.0.0.1', () => {
        client.write('HTTP/1.1 200 OK\r\n\r\n');
        client.pipe(upstream).pipe(client);
      });
      sockets.add(upstream);
      upstream.on('error', () => client.destroy());
      upstream.on('close', () => client.destroy());
      client.on('close', () => upstream.destroy());
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    // A listening TCP server has an AddressInfo; a string is only for pipes.
    port: (server.address() as AddressInfo).port,
    asked,
    close: async () => {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
