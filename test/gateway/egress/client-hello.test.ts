import net from 'node:net';
import tls from 'node:tls';
import test from 'ava';
import fc from 'fast-check';
import { parseClientHello } from '../../../gateway/egress/client-hello.ts';

const LIMIT = 32 * 1024;

/** The first flight a real client sends. */
async function realHello(options: tls.ConnectionOptions): Promise<Buffer> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const hello = new Promise<Buffer>((resolve) => {
    server.once('connection', (socket) => {
      socket.on('error', () => {}); // the client is cut below
      socket.once('data', (bytes) => {
        resolve(bytes);
        socket.destroy();
      });
    });
  });
  const client = tls.connect({ host: '127.0.0.1', port, ...options });
  client.on('error', () => {}); // it never gets an answer
  const bytes = await hello;
  client.destroy();
  server.close();
  return bytes;
}

/** The same handshake message cut into records of `size` bytes. */
function inRecords(hello: Buffer, size: number): Buffer {
  const message = hello.subarray(5);
  const records: Buffer[] = [];
  for (let pos = 0; pos < message.length; pos += size) {
    const part = message.subarray(pos, pos + size);
    records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part);
  }
  return Buffer.concat(records);
}

test('parseClientHello() reads the server name of a real client, however the message is cut', async (t) => {
  const hello = await realHello({ servername: 'api.example.com', ALPNProtocols: ['h2', 'http/1.1'] });
  const expected = { kind: 'hello', serverName: 'api.example.com' } as const;
  t.deepEqual(parseClientHello(hello, LIMIT), expected);
  for (const size of [1, 2, 3, 4, 5, 100])
    t.deepEqual(parseClientHello(inRecords(hello, size), LIMIT), expected, `records of ${size}`);
  for (let length = 0; length < hello.length; length++) {
    t.is(parseClientHello(hello.subarray(0, length), LIMIT).kind, 'incomplete', `first ${length} bytes`);
  }
});

test('parseClientHello() tells when there is no server name', async (t) => {
  const hello = await realHello({});
  t.deepEqual(parseClientHello(hello, LIMIT), { kind: 'hello', serverName: null });
});

test('parseClientHello() refuses a hello longer than the limit instead of waiting for it', async (t) => {
  const hello = await realHello({ servername: 'api.example.com' });
  t.is(parseClientHello(hello, 100).kind, 'malformed');
});

test('parseClientHello() never throws on arbitrary bytes or a flipped byte of a real hello', async (t) => {
  const hello = await realHello({ servername: 'api.example.com' });
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 200 }),
      (bytes) => typeof parseClientHello(Buffer.from(bytes), LIMIT).kind === 'string',
    ),
  );
  fc.assert(
    fc.property(fc.nat(hello.length - 1), fc.nat(255), (at, value) => {
      const changed = Buffer.from(hello);
      changed[at] = value;
      return typeof parseClientHello(changed, LIMIT).kind === 'string';
    }),
  );
  t.pass();
});
