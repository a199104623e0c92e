/** BAD-INPUT rows T2–T4, T6: clients that speak odd TLS, or do not trust the gateway. */
import { X509Certificate } from 'node:crypto';
import { Duplex } from 'node:stream';
import { type TLSSocket, connect as tlsConnect } from 'node:tls';
import anyTest, { type TestFn } from 'ava';
import type { AuditLine } from '../../kit/audit-reader.ts';
import { createAuthority, oldTlsOnly } from '../../kit/certificates.ts';
import type { RawConnection } from '../../kit/raw-client.ts';
import { request, tunnel, useStage } from './stage.ts';

const test = anyTest as TestFn;

const policy = `
version: 1
name: client-tls
rules:
  - name: all
    effect: allow
    hosts: [good.acme.test]
`;

const stage = useStage(test, () => ({ policy, tls: { 'good.acme.test': {} } }));
/** A tunnel in which the test speaks TLS itself. */
const rawTunnel = tunnel('good.acme.test:443', { plain: true });
const stranger = createAuthority('Unknown Authority');

/** Matches the tunnel's own records, whatever other tunnels end meanwhile. Ask before the connection is closed. */
function recordsOf(connection: RawConnection): (line: AuditLine) => boolean {
  const src = `127.0.0.1:${connection.socket.localPort}`;
  return (line) => line.conn?.src === src && line.kind !== 'http.request';
}

test.serial('T2 a client that offers TLS 1.1 at most is refused', async (t) => {
  const connection = await stage().open(t, rawTunnel);
  const isOurs = recordsOf(connection);
  await t.throwsAsync(connection.startTls({ servername: 'good.acme.test', options: oldTlsOnly }));
  const record = await stage().gateway.audit.find(isOurs);
  t.deepEqual([record.verdict, record.code], ['error', 'tls_handshake_failed']);
});

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  test.serial(`T2 a client that speaks ${version} is served`, async (t) => {
    const connection = await stage().open(t, rawTunnel);
    const options = { minVersion: version, maxVersion: version };
    const inner = await connection.startTls({ servername: 'good.acme.test', ca: stage().gateway.ca, options });
    t.teardown(() => inner.close());
    t.is((await inner.ask(request('GET /x HTTP/1.1', 'Host: good.acme.test'))).status, 200);
  });
}

test.serial('T3 leaf and CA are valid for a client whose clock is minutes behind or ahead', async (t) => {
  const connection = await stage().open(t, rawTunnel);
  const inner = await connection.startTls({ servername: 'good.acme.test', ca: stage().gateway.ca });
  t.teardown(() => inner.close());
  const tenMinutesMs = 600_000;
  // The socket under a RawConnection of startTls is the TLS socket.
  const certificate = (inner.socket as TLSSocket).getPeerX509Certificate();
  for (const one of [certificate, new X509Certificate(stage().gateway.ca)]) {
    t.true(Date.parse(one?.validFrom ?? '') < Date.now() - tenMinutesMs);
    t.true(Date.parse(one?.validTo ?? '') > Date.now() + tenMinutesMs);
  }
});

/** Bytes of a ClientHello as Node writes it. */
function clientHello(servername: string, alpnBytes = 0): Promise<Buffer> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    const sink = new Duplex({
      read: () => {},
      write: (chunk: Buffer, _encoding, done) => {
        parts.push(chunk);
        done();
        setImmediate(() => {
          socket.destroy();
          resolve(Buffer.concat(parts));
        });
      },
    });
    const protocols = Array.from({ length: Math.ceil(alpnBytes / 200) }, (_, n) => String(n).padStart(199, 'p'));
    const socket = tlsConnect({ socket: sink, servername, ...(alpnBytes > 0 ? { ALPNProtocols: protocols } : {}) });
    socket.on('error', () => {});
  });
}

/** The same handshake message in records of `size` bytes. */
function split(hello: Buffer, size: number): Buffer {
  const message = messageOf(hello);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) {
    const part = message.subarray(at, at + size);
    records.push(Buffer.concat([Buffer.of(22, 3, 1, part.length >> 8, part.length & 0xff), part]));
  }
  return Buffer.concat(records);
}

function messageOf(records: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < records.length; ) {
    const length = records.readUInt16BE(at + 3);
    parts.push(records.subarray(at + 5, at + 5 + length));
    at += 5 + length;
  }
  return Buffer.concat(parts);
}

/** A ServerHello or alert: the hello was understood, or TLS said why not. */
async function firstRecordType(connection: RawConnection): Promise<number> {
  return new Promise((resolve) => {
    connection.socket.once('data', (bytes: Buffer) => resolve(bytes[0] ?? -1));
    connection.socket.once('close', () => resolve(-1));
  });
}

for (const size of [1, 7, 100]) {
  test.serial(`T4 a hello split into records of ${size} bytes is answered`, async (t) => {
    const connection = await stage().open(t, rawTunnel);
    const answered = firstRecordType(connection);
    connection.write(split(await clientHello('good.acme.test'), size));
    t.is(await answered, 22);
  });
}

test.serial('T4 a hello that comes byte by byte is answered', async (t) => {
  const connection = await stage().open(t, rawTunnel);
  connection.socket.setNoDelay(true);
  const answered = firstRecordType(connection);
  for (const byte of await clientHello('good.acme.test')) {
    connection.write(Buffer.of(byte));
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  t.is(await answered, 22);
});

test.serial('T4 a hello of 20 KiB is answered', async (t) => {
  const hello = await clientHello('good.acme.test', 20 * 1024);
  t.true(hello.length > 20 * 1024);
  const connection = await stage().open(t, rawTunnel);
  const answered = firstRecordType(connection);
  connection.write(hello);
  // ALPN without http/1.1 ends in an alert, which shows as much that the whole hello was read.
  t.true([21, 22].includes(await answered));
});

test.serial('T4 a split hello for another name is still seen', async (t) => {
  const connection = await stage().open(t, rawTunnel);
  const isOurs = recordsOf(connection);
  connection.write(split(await clientHello('other.acme.test'), 3));
  t.is((await connection.readToClose()).length, 0);
  t.is((await stage().gateway.audit.find(isOurs)).code, 'authority_mismatch');
});

const junk: readonly [title: string, bytes: Buffer][] = [
  [
    'a hello longer than the limit',
    Buffer.concat([Buffer.of(22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff), Buffer.alloc(0x4000 - 4)]),
  ],
  ['a record of length 0', Buffer.of(22, 3, 1, 0, 0)],
  ['a record of 65535 bytes', Buffer.of(22, 3, 1, 0xff, 0xff)],
  ['a server hello', Buffer.of(22, 3, 1, 0, 4, 2, 0, 0, 0)],
  ['an alert', Buffer.of(21, 3, 1, 0, 2, 2, 40)],
  ['an SSLv2 hello', Buffer.of(0x80, 0x2e, 1, 3, 1, 0, 0x15)],
  ['a truncated hello', Buffer.of(22, 3, 1, 0, 6, 1, 0, 0, 2, 3, 3)],
  ['NUL bytes', Buffer.alloc(16)],
];
for (const [title, bytes] of junk) {
  test.serial(`T4 ${title} ends the tunnel with a record`, async (t) => {
    const connection = await stage().open(t, rawTunnel);
    const isOurs = recordsOf(connection);
    connection.write(bytes);
    await connection.readToClose();
    const record = await stage().gateway.audit.find(isOurs);
    t.not(record.verdict, 'allow', record.text);
  });
}

test.serial('T6 a client that does not trust the CA leaves a record that says so', async (t) => {
  const connection = await stage().open(t, rawTunnel);
  const isOurs = recordsOf(connection);
  // Node checks after the handshake and hangs up without an alert.
  await t.throwsAsync(connection.startTls({ servername: 'good.acme.test', ca: stranger.certPem }));
  const record = await stage().gateway.audit.find(isOurs);
  t.regex(record.reason ?? '', /CA/);
});

test.serial('T6 an alert unknown_ca of the client is recognised', async (t) => {
  const connection = await stage().open(t, rawTunnel);
  const isOurs = recordsOf(connection);
  const answered = firstRecordType(connection);
  connection.write(await clientHello('good.acme.test'));
  await answered;
  connection.write(Buffer.of(21, 3, 3, 0, 2, 2, 48));
  const record = await stage().gateway.audit.find(isOurs);
  t.is(record.code, 'tls_client_rejected_ca');
});
