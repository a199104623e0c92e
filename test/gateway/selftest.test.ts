/** The boundary self-test: what it notices, and what the gateway does then. */
import { readFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import type { SelftestReport } from '../../gateway/api/index.ts';
import { Callers, type EgressContext } from '../../gateway/egress/index.ts';
import { SelfTest } from '../../gateway/selftest/selftest.ts';
import { askTunnel } from '../kit/raw-client.ts';
import { scratchDirectory } from '../kit/scratch.ts';
import { expectRefused, proxy, proxyRequest, request, type Stage, tunnel, useStage } from './bad-input/stage.ts';

const test = anyTest as TestFn;

const policy = `
version: 1
name: selftest
rules:
  - { name: all, effect: allow, hosts: [api.acme.test] }
  - { name: plain, effect: allow, scheme: http, hosts: [plain.acme.test] }
`;

const stage = useStage(test, () => ({ policy, tls: { 'api.acme.test': {} }, plain: { 'plain.acme.test': {} } }));

/** Runs the self-test against a proxy that is not ours: `onConnect` gets the client and the canary server's port. */
async function against(
  t: ExecutionContext,
  onConnect: (client: net.Socket, canaryPort: number) => void,
): Promise<SelftestReport> {
  const folder = await scratchDirectory();
  const selfTest = await SelfTest.create(folder.path);
  const callers = new Callers();
  const server = net.createServer((client) => {
    client.on('error', () => {});
    const [pin] = [...callers.all()].flatMap((caller) => [...caller.pins.values()]);
    onConnect(client, pin?.port ?? 0);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(async () => {
    server.close();
    await selfTest.close();
    await folder.remove();
  });
  const caPem = readFileSync(join(folder.path, 'selftest-ca.pem'), 'utf8');
  // The self-test asks a context for its callers and its authority, and for nothing else.
  const context = { callers, ca: { certPem: caPem } } as unknown as EgressContext;
  // A TCP server that listens has an address with a port.
  const { port } = server.address() as net.AddressInfo;
  return await selfTest.run(context, { host: '127.0.0.1', port });
}

test.serial('the self-test notices a proxy that lets everything through', async (t) => {
  const report = await against(t, (client, canaryPort) => {
    client.once('data', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      const upstream = net.connect(canaryPort, '127.0.0.1');
      upstream.on('error', () => client.destroy()).on('close', () => client.destroy());
      client.on('close', () => upstream.destroy());
      client.pipe(upstream).pipe(client);
    });
  });
  t.false(report.ok);
  const passed = report.checks.filter(({ ok }) => ok).map(({ name }) => name);
  t.deepEqual(passed, ['an allowed request passes', 'no credential leaves where it is not bound']);
  t.true(report.checks.some(({ leaked }) => leaked));
});

test.serial('the self-test takes a proxy that does not answer for one that failed', async (t) => {
  const report = await against(t, (client) => client.destroy());
  t.false(report.ok);
  t.false(report.checks.some(({ leaked }) => leaked));
  t.deepEqual(
    report.checks.filter(({ ok }) => ok).map(({ name }) => name),
    // Closing on everybody is what this one check asks for.
    ['a TLS name that is not the CONNECT name is cut'],
  );
});

/** Identity checking that lets nobody in: every canary fails, as after a fault of ours. */
function breakIdentity(t: ExecutionContext): () => void {
  const { authenticate } = Callers.prototype;
  const repair = () => {
    Callers.prototype.authenticate = authenticate;
  };
  Callers.prototype.authenticate = () => null;
  t.teardown(repair);
  return repair;
}

async function refusedEverywhere(t: ExecutionContext, here: Stage): Promise<void> {
  const expected = { status: 503, code: 'selftest_failed' };
  here.clear();
  const connect = await here.open(t, proxy);
  await expectRefused(t, here, await askTunnel(connect, 'api.acme.test:443', here.gateway.authorization), expected);
  const plain = await here.open(t, proxy);
  const answer = await plain.ask(
    here.expand(proxyRequest('GET http://plain.acme.test/ HTTP/1.1', 'Host: plain.acme.test')),
  );
  await expectRefused(t, here, answer, expected);
  t.regex(answer.body.toString(), /an allowed request passes/);
}

test.serial(
  'a self-test that fails shuts the gateway, open tunnels too, and says why; one that passes opens it',
  async (t) => {
    const here = stage();
    const open = await here.open(t, tunnel('api.acme.test:443'));
    t.is((await open.ask(request('GET /before HTTP/1.1', 'Host: api.acme.test'))).status, 200);
    const repair = breakIdentity(t);
    const report = await here.gateway.gateway.selftest();
    repair();
    t.false(report.ok);
    t.regex(here.gateway.gateway.status().refusing ?? '', /an allowed request passes/);
    t.true(here.gateway.log.some((line) => line.includes('all traffic is refused')));
    await refusedEverywhere(t, here);
    const inside = await open.ask(request('GET /shut HTTP/1.1', 'Host: api.acme.test'));
    await expectRefused(t, here, inside, { status: 503, code: 'selftest_failed' });
    const record = await here.gateway.audit.find((line) => line.kind === 'selftest' && line.verdict === 'error');
    t.regex(record.text, /an allowed request passes/);

    t.true((await here.gateway.gateway.selftest()).ok);
    const after = await here.open(t, tunnel('api.acme.test:443'));
    t.is((await after.ask(request('GET /after HTTP/1.1', 'Host: api.acme.test'))).status, 200);
  },
);

test.serial('a reload runs the self-test: one that fails there shuts the gateway', async (t) => {
  const here = stage();
  const repair = breakIdentity(t);
  t.true((await here.gateway.reload(policy)).ok);
  repair();
  await refusedEverywhere(t, here);
  t.true((await here.gateway.reload(policy)).ok);
  t.is(here.gateway.gateway.status().refusing, null);
});

test.serial('a reload that is refused is said in the log of the gateway and in the audit log', async (t) => {
  const here = stage();
  const mark = await here.gateway.audit.mark();
  const report = await here.gateway.reload(policy.replace('effect: allow', 'efect: allow'));
  t.teardown(() => here.gateway.reload(policy));
  t.false(report.ok);
  const line = here.gateway.log.find((one) => one.includes('reload refused'));
  t.regex(line ?? '', /policy\.yaml:5:.*efect.*Did you mean/);
  const record = await here.gateway.audit.find((one) => one.kind === 'policy.reload', mark);
  t.deepEqual([record.verdict, record.code], ['error', 'refused']);
});
