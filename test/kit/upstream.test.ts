import type { ExecutionContext } from 'ava';
import test from 'ava';
import { createAuthority } from './certificates.ts';
import { header } from './http-message.ts';
import { connectRaw } from './raw-client.ts';
import {
  afterInterim,
  chunked,
  closeDelimited,
  type Echo,
  eventStream,
  gated,
  resettable,
  respond,
  silent,
} from './replies.ts';
import { startUpstream, type UpstreamOptions } from './upstream.ts';

async function pair(t: ExecutionContext, options: UpstreamOptions) {
  const upstream = await startUpstream(options);
  const client = await connectRaw({ port: upstream.port });
  t.teardown(async () => {
    client.close();
    await upstream.close();
  });
  return { upstream, client };
}

test('startUpstream() keeps the bytes of each of two requests sent in one write', async (t) => {
  const { upstream, client } = await pair(t, {});
  const first = 'POST /a HTTP/1.1\r\nhOsT: x\r\nContent-Length: 3\r\n\r\n';
  const second = 'POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
  client.write(`${first}abc${second}2;x=y\r\nhi\r\n0\r\nT: v\r\n\r\n`);
  const echoed = JSON.parse((await client.readResponse()).body.toString()) as Echo;
  t.is(echoed.bodyBytes, 3);
  t.deepEqual(echoed.headers[0], ['hOsT', 'x']);
  await client.readResponse();
  t.deepEqual(
    upstream.requests.map((one) => [one.rawHead, one.body.toString(), one.rawBody.toString(), one.connection]),
    [
      [first, 'abc', 'abc', 0],
      [second, 'hi', '2;x=y\r\nhi\r\n0\r\nT: v\r\n\r\n', 0],
    ],
  );
});

test('replies answer as they say', async (t) => {
  const { client } = await pair(t, {
    routes: {
      '/fixed': respond({ status: 418, headers: { 'x-a': 'b' }, body: 'tea' }),
      '/chunked': chunked(['one ', 'two'], { 'x-trailer': 'z' }),
      '/interim': afterInterim([100, 103], respond({ body: 'late' })),
      '/closed': closeDelimited('to the end'),
    },
  });
  const fixed = await client.ask('GET /fixed HTTP/1.1\r\n\r\n');
  t.deepEqual([fixed.status, header(fixed.headers, 'X-A'), fixed.body.toString()], [418, 'b', 'tea']);
  t.is((await client.ask('HEAD /fixed HTTP/1.1\r\n\r\n', 'HEAD')).body.length, 0);
  t.is((await client.ask('GET /chunked HTTP/1.1\r\n\r\n')).body.toString(), 'one two');
  t.is((await client.ask('GET /interim HTTP/1.1\r\n\r\n')).body.toString(), 'late');
  t.is((await client.ask('GET /closed HTTP/1.1\r\n\r\n')).body.toString(), 'to the end');
});

test('eventStream() sends an event only when it is released', async (t) => {
  const events = eventStream();
  const { upstream, client } = await pair(t, { reply: events.reply });
  client.write('GET / HTTP/1.1\r\n\r\n');
  await client.readHead();
  await upstream.requestsReached(1);
  events.release('one');
  t.true((await client.readUntil('\n\n')).endsWith('data: one\n\n'));
  events.release('two');
  t.true((await client.readUntil('\n\n')).endsWith('data: two\n\n'));
  events.end();
  await client.readToClose();
});

test('gated() holds a reply and silent() never gives one', async (t) => {
  const gate = gated(respond({ body: 'now' }));
  const { upstream, client } = await pair(t, { reply: gate.reply, routes: { '/silent': silent } });
  client.write('GET / HTTP/1.1\r\n\r\n');
  await upstream.requestsReached(1);
  gate.open();
  t.is((await client.readResponse()).body.toString(), 'now');
  client.write('GET /silent HTTP/1.1\r\n\r\n');
  await upstream.requestsReached(2);
});

for (const kind of ['plaintext', 'TLS'] as const) {
  test(`resettable() breaks a ${kind} connection with RST after its bytes`, async (t) => {
    const { certPem: cert, keyPem: key } = createAuthority().issue({ names: ['a.test'] });
    const answer = resettable('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart');
    const { client } = await pair(t, { reply: answer.reply, ...(kind === 'TLS' ? { tls: { cert, key } } : {}) });
    const wire = kind === 'TLS' ? await client.startTls({ servername: 'a.test' }) : client;
    wire.write('GET / HTTP/1.1\r\n\r\n');
    await wire.readUntil('part');
    answer.reset();
    await wire.readToClose();
    t.is(wire.error?.code, 'ECONNRESET');
  });
}
