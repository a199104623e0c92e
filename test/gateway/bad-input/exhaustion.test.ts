/** BAD-INPUT O7: a gateway that has no file descriptor left, and one that gets them back. */
import { once } from 'node:events';
import test from 'ava';
import { verifyAudit } from '../../../gateway/audit/index.ts';
import { eventually, writeHome } from '../../kit/gateway.ts';
import { connectRaw, proxyAuthorization, type RawConnection } from '../../kit/raw-client.ts';
import { respond } from '../../kit/replies.ts';
import { scratchDirectory } from '../../kit/scratch.ts';
import { begin, startProcess } from '../../kit/start-gateway-process.ts';
import { startUpstream } from '../../kit/upstream.ts';

const policy = `
version: 1
name: exhaustion
rules:
  - { name: plain, effect: allow, scheme: http, hosts: [plain.acme.test] }
`;

/** Descriptors of the gateway; it needs fewer than forty for itself. */
const maxFiles = 120;

test('O7 a gateway without free file descriptors refuses, does not end, and serves again when there are some', async (t) => {
  const home = await scratchDirectory();
  t.teardown(() => home.remove());
  const upstream = await startUpstream({ reply: respond({ body: 'ok' }) });
  t.teardown(() => upstream.close());
  const upstreams = [{ name: 'plain.acme.test', port: upstream.port }];
  const config = await writeHome(home.path, { policy, upstreams }, { port: 0 });
  const child = startProcess(t, maxFiles);
  const { port, id, token } = await begin(child, config);
  const ask = async (path: string): Promise<number> => {
    const connection = await connectRaw({ port });
    const authorization = proxyAuthorization(id, token);
    const head = `GET http://plain.acme.test${path} HTTP/1.1\r\nHost: plain.acme.test\r\n${authorization}\r\n`;
    const answer = await connection.ask(head).catch(() => null);
    connection.close();
    return answer?.status ?? 0;
  };
  t.is(await ask('/before'), 200);

  const flood = await Promise.all(Array.from({ length: 2 * maxFiles }, () => connectRaw({ port })));
  for (const connection of flood) connection.write('GET http://plain.acme.test/half');
  t.not(await ask('/during'), 200);
  for (const connection of flood) connection.close();
  await Promise.all(flood.map(closed));

  await eventually('the gateway to serve again', async () => (await ask('/after')) === 200);
  t.is(child.exitCode, null);
  const gone = once(child, 'exit');
  child.stdin?.end();
  await gone;
  const report = await verifyAudit({ source: { dir: config.audit.dir } });
  t.true(report.ok);
  t.deepEqual(report.gaps, []);
});

async function closed({ socket }: RawConnection): Promise<void> {
  if (!socket.closed) await once(socket, 'close');
}
