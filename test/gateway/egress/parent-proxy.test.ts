/** Through a corporate proxy: it is asked for the vetted address, and what it says no to is a 502. */
import net from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { createAuthority } from '../../kit/certificates.ts';
import { withGateway } from '../../kit/gateway.ts';
import { askTunnel } from '../../kit/raw-client.ts';
import { startUpstream } from '../../kit/upstream.ts';

/** A public address that is never dialled: the parent answers for it. */
const PUBLIC = '93.184.216.34';

const policy = `
version: 1
name: parent
rules:
  - { name: inside, effect: allow, hosts: [api.acme.test] }
  - { name: plain, effect: allow, scheme: http, hosts: [plain.acme.test] }
`;

/** A parent that forwards every CONNECT to one of two loopback ports, or refuses. */
async function startParent(t: ExecutionContext, portFor: (authority: string) => number | null) {
  const asked: string[] = [];
  const sockets = new Set<net.Socket>();
  const server = net.createServer((client) => {
    sockets.add(client);
    client.on('error', () => client.destroy());
    client.once('data', (bytes) => {
      const authority = /^CONNECT (\S+) HTTP\/1\.1\r\n/.exec(bytes.toString('latin1'))?.[1] ?? '';
      asked.push(authority);
      const port = portFor(authority);
      if (port === null) return client.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
      const onward = net.connect(port, '127.0.0.1', () => {
        client.write('HTTP/1.1 200 OK\r\n\r\n');
        client.pipe(onward).pipe(client);
      });
      sockets.add(onward);
      onward.on('error', () => client.destroy());
      return undefined;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  });
  const address = server.address();
  return { port: typeof address === 'object' && address !== null ? address.port : 0, asked };
}

for (const wireMode of ['direct', 'plain'] as const) {
  test(`a parent proxy is asked for the vetted address, https and http (${wireMode})`, async (t) => {
    const authority = createAuthority();
    const leaf = authority.issue({ names: ['api.acme.test'] });
    const secure = await startUpstream({ tls: { cert: leaf.certPem, key: leaf.keyPem } });
    const plain = await startUpstream();
    t.teardown(() => Promise.all([secure.close(), plain.close()]));
    const parent = await startParent(t, (to) => (to.endsWith(':443') ? secure.port : plain.port));
    const gateway = await withGateway(t, {
      policy,
      parentProxy: parent.port,
      extraCa: authority.certPem,
      resolve: async () => [PUBLIC],
      wireMode,
    });
    const inside = await gateway.connect();
    t.is((await askTunnel(inside, 'api.acme.test:443', gateway.authorization)).status, 200);
    const secured = await inside.startTls({ servername: 'api.acme.test', ca: gateway.ca });
    t.is((await secured.ask('GET /a HTTP/1.1\r\nHost: api.acme.test\r\n\r\n')).status, 200);
    const open = await gateway.connect();
    const request = `GET http://plain.acme.test/b HTTP/1.1\r\nHost: plain.acme.test\r\n${gateway.authorization}\r\n`;
    t.is((await open.ask(request)).status, 200);
    t.deepEqual(parent.asked, [`${PUBLIC}:443`, `${PUBLIC}:80`]);
    await Promise.all([inside.close(), open.close()]);
  });
}

test('a parent proxy that refuses is a 502, and an address of the never-list is not even asked for', async (t) => {
  const parent = await startParent(t, () => null);
  const answers = new Map([['plain.acme.test', '10.0.0.1']]);
  const gateway = await withGateway(t, {
    policy,
    parentProxy: parent.port,
    resolve: async (name) => [answers.get(name) ?? PUBLIC],
  });
  const inside = await gateway.connect();
  t.is((await askTunnel(inside, 'api.acme.test:443', gateway.authorization)).status, 200);
  const secured = await inside.startTls({ servername: 'api.acme.test', ca: gateway.ca });
  t.is((await secured.ask('GET /a HTTP/1.1\r\nHost: api.acme.test\r\n\r\n')).status, 502);
  const open = await gateway.connect();
  const request = `GET http://plain.acme.test/b HTTP/1.1\r\nHost: plain.acme.test\r\n${gateway.authorization}\r\n`;
  t.is((await open.ask(request)).status, 403);
  t.deepEqual(parent.asked, [`${PUBLIC}:443`]);
  await Promise.all([inside.close(), open.close()]);
});
