/**
 * `kill -9` of a gateway under load, again and again on one audit log: the log verifies each time, and no upstream ever saw a
 * request that is neither recorded nor covered by the gap that the next start records.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import { type AuditGap, verifyAudit } from '../../gateway/audit/index.ts';
import type { GatewayConfig } from '../../gateway/index.ts';
import { type AuditLine, AuditReader } from '../kit/audit-reader.ts';
import { eventually, writeHome } from '../kit/gateway.ts';
import type { GatewayProcessReady } from '../kit/gateway-process.ts';
import { connectRaw, proxyAuthorization } from '../kit/raw-client.ts';
import { respond } from '../kit/replies.ts';
import { scratchDirectory } from '../kit/scratch.ts';
import { begin, startProcess } from '../kit/start-gateway-process.ts';
import { startUpstream, type Upstream } from '../kit/upstream.ts';

/** Two logs are killed at the same time, fifty times together. */
const kills = 25;
const clients = 8;
/** Requests the upstream sees before the kill: from right after the start to deep in a second block of sequence numbers. */
const killAfter = (cycle: number): number => 1 + ((cycle * 37) % 300);

const policy = `
version: 1
name: kill
rules:
  - name: plain
    effect: allow
    scheme: http
    hosts: [plain.acme.test]
`;

for (const fsync of ['interval', 'always'] as const) {
  test(`kill -9 under load, ${kills} times with fsync ${fsync}: the log verifies and covers what the upstream saw`, async (t) => {
    t.timeout(240_000);
    const home = await scratchDirectory();
    t.teardown(() => home.remove());
    const upstream = await startUpstream({ reply: respond({ body: 'ok' }) });
    t.teardown(() => upstream.close());
    const upstreams = [{ name: 'plain.acme.test', port: upstream.port }];
    const config = await writeHome(home.path, { policy, upstreams, audit: { fsync } }, { port: 0 });

    const seen: string[][] = [];
    let next = startProcess(t);
    for (let cycle = 0; cycle < kills; cycle += 1) {
      const running = next;
      const ready = await begin(running, config);
      // Behind the start: the log was reopened, and what the last kill tore is mended or reported.
      const report = await verifyAudit({ source: { dir: config.audit.dir } });
      t.is(report.firstBad, null, `cycle ${cycle}`);
      t.is(report.gaps.length, cycle, `cycle ${cycle}: one gap a kill`);
      next = startProcess(t);
      seen.push(await loadUntilKilled(running, ready, upstream, cycle));
    }
    await stop(next, config);

    const report = await verifyAudit({ source: { dir: config.audit.dir } });
    t.true(report.ok);
    t.is(report.gaps.length, kills);
    checkCoverage(t, seen, await new AuditReader(config.audit.dir).all(), report.gaps);
  });
}

/** Every request that reached the upstream in a cycle has its record, or is counted by the gap behind that cycle. */
function checkCoverage(
  t: ExecutionContext,
  seen: readonly string[][],
  lines: readonly AuditLine[],
  gaps: readonly AuditGap[],
): void {
  const recorded = new Set(
    lines.flatMap((line) => (line.request?.host === 'plain.acme.test' ? [line.request.path] : [])),
  );
  let unrecorded = 0;
  for (const [cycle, paths] of seen.entries()) {
    const missing = paths.filter((path) => !recorded.has(path)).length;
    const atMost = gaps[cycle]?.atMost ?? Number.POSITIVE_INFINITY;
    t.true(missing <= atMost, `cycle ${cycle}: ${missing} requests without record, the gap says at most ${atMost}`);
    t.true(atMost <= 512, `cycle ${cycle}: a gap of ${atMost} says nothing`);
    unrecorded += missing;
  }
  const total = seen.reduce((sum, paths) => sum + paths.length, 0);
  t.log(`${total} requests reached the upstream in ${seen.length} cycles, ${unrecorded} of them without record`);
  t.true(total > kills);
}

/** Loads the gateway, kills it in the middle, and gives the paths that the upstream saw. */
async function loadUntilKilled(
  child: ChildProcess,
  ready: GatewayProcessReady,
  upstream: Upstream,
  cycle: number,
): Promise<string[]> {
  upstream.clear();
  const gone = once(child, 'exit');
  const load = Array.from({ length: clients }, (_, client) => ask(ready, `/${cycle}/${client}`));
  await eventually(`${killAfter(cycle)} requests`, () => upstream.requests.length >= killAfter(cycle));
  child.kill('SIGKILL');
  await gone;
  await Promise.all(load);
  // What the kernel still holds of the dead gateway's connections has to arrive before it is counted.
  await eventually('connections of the dead gateway to close', () => upstream.openConnections === 0);
  return upstream.requests.map((request) => request.target);
}

/** Asks over one kept connection until it breaks. */
async function ask({ port, id, token }: GatewayProcessReady, prefix: string): Promise<void> {
  const connection = await connectRaw({ port }).catch(() => null);
  for (let nth = 0; connection !== null; nth += 1) {
    const url = `http://plain.acme.test${prefix}/${nth}`;
    const head = `GET ${url} HTTP/1.1\r\nHost: plain.acme.test\r\n${proxyAuthorization(id, token)}\r\n`;
    const answer = await connection.ask(head).catch(() => null);
    if (answer === null) return connection.close();
  }
}

/** The last process only opens the log, which records the last gap, and ends in order. */
async function stop(child: ChildProcess, config: GatewayConfig): Promise<void> {
  await begin(child, config);
  const gone = once(child, 'exit');
  child.stdin?.end();
  await gone;
}
