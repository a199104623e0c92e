/** BAD-INPUT group D: destinations that are, or turn out to be, addresses nobody may reach. */
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { createAuthority } from '../../kit/certificates.ts';
import { startTestGateway } from '../../kit/gateway.ts';
import { askTunnel, type RawResponse } from '../../kit/raw-client.ts';
import { startUpstream } from '../../kit/upstream.ts';
import { startParentProxy } from './parent-proxy.ts';
import { expectRefused, proxy, request, type Stage, useStage } from './stage.ts';

const test = anyTest as TestFn;

const policy = `
version: 1
name: addresses
rules:
  - name: names
    effect: allow
    hosts: [api.acme.test, rebind.acme.test, mixed.acme.test, inside.acme.test]
  - name: private-block
    effect: allow
    cidrs: [10.0.0.0/8, 8.8.8.0/24]
`;

/** What the resolver answers by name, one list after the other; the last one stays. */
const answers: Record<string, readonly (readonly string[])[]> = {
  'rebind.acme.test': [['93.184.216.34'], ['127.0.0.1']],
  'mixed.acme.test': [['127.0.0.1', '169.254.169.254', '93.184.216.35', '10.0.0.1']],
  'inside.acme.test': [['127.0.0.1']],
};
const lookups: string[] = [];

async function resolve(name: string): Promise<readonly string[]> {
  const list = answers[name] ?? [[]];
  const nth = lookups.filter((one) => one === name).length;
  lookups.push(name);
  return list[Math.min(nth, list.length - 1)] ?? [];
}

const stage = useStage(test, () => ({ policy, resolve, tls: { 'api.acme.test': {} } }));

async function connectTo(t: ExecutionContext, here: Stage, authority: string): Promise<RawResponse> {
  here.clear();
  const connection = await here.open(t, proxy);
  return await connection.ask(
    `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${here.gateway.authorization}\r\n`,
  );
}

/** title, CONNECT authority, status, code. `never_list` shows that no rule had a say. */
const addresses: readonly [title: string, authority: string, status: number, code: string][] = [
  ['D1 a short address', '127.1:443', 403, 'never_list'],
  ['D1 a hexadecimal address', '0x7f.0.0.1:443', 403, 'never_list'],
  ['D1 one hexadecimal number', '0x7f000001:443', 403, 'never_list'],
  ['D1 one decimal number', '2130706433:443', 403, 'never_list'],
  ['D1 octal numbers', '0177.0.0.01:443', 403, 'never_list'],
  ['D1 a short metadata address', '169.16689662:443', 403, 'never_list'],
  ['D1 a trailing dot', '127.0.0.1.:443', 403, 'never_list'],
  ['D1 a number that fits no address', '256.1.1.1:443', 400, 'host_ipv4'],
  ['D1 full-width digits', `${Buffer.from('１２７.0.0.1', 'utf8').toString('latin1')}:443`, 400, 'request_target'],
  ['D2 a mapped metadata address', '[::ffff:169.254.169.254]:443', 403, 'never_list'],
  ['D2 a mapped loopback in hex', '[::ffff:7f00:1]:443', 403, 'never_list'],
  ['D3 a compatible metadata address', '[::169.254.169.254]:443', 403, 'never_list'],
  ['D4 NAT64', '[64:ff9b::a9fe:a9fe]:443', 403, 'never_list'],
  ['D4 local NAT64', '[64:ff9b:1::a9fe:a9fe]:443', 403, 'never_list'],
  ['D5 6to4', '[2002:a9fe:a9fe::1]:443', 403, 'never_list'],
  ['D5 Teredo', '[2001:0:a9fe:a9fe::5601:5601]:443', 403, 'never_list'],
  ['D5 ISATAP', '[2001:4860::5efe:a9fe:a9fe]:443', 403, 'never_list'],
  ['D6 0.0.0.0', '0.0.0.0:443', 403, 'never_list'],
  ['D6 0', '0:443', 403, 'never_list'],
  ['D6 ::', '[::]:443', 403, 'never_list'],
  ['D7 the metadata address', '169.254.169.254:443', 403, 'never_list'],
  ['D7 metadata of Alibaba', '100.100.100.200:443', 403, 'never_list'],
  ['D7 metadata of Azure', '168.63.129.16:443', 403, 'never_list'],
  ['D7 metadata of Oracle', '192.0.0.192:443', 403, 'never_list'],
  ['D7 metadata of AWS over IPv6', '[fd00:ec2::254]:443', 403, 'never_list'],
  ['D7 metadata of Google over IPv6', '[fd20:ce::254]:443', 403, 'never_list'],
  ['D7 CGNAT', '100.64.0.1:443', 403, 'private_address'],
  ['D8 multicast', '224.0.0.1:443', 403, 'never_list'],
  ['D8 broadcast', '255.255.255.255:443', 403, 'never_list'],
  ['D8 benchmark space', '198.18.0.1:443', 403, 'never_list'],
  ['D8 documentation space', '192.0.2.1:443', 403, 'never_list'],
  ['D8 documentation space over IPv6', '[2001:db8::1]:443', 403, 'never_list'],
  ['D8 IPv6 multicast', '[ff02::1]:443', 403, 'never_list'],
  ['D8 link-local over IPv6', '[fe80::1]:443', 403, 'never_list'],
  ['D9 metadata.google.internal', 'metadata.google.internal:443', 403, 'never_list'],
  ['D9 metadata.google.internal.', 'metadata.google.internal.:443', 403, 'never_list'],
  ['D9 METADATA.google.internal', 'METADATA.google.internal:80', 403, 'never_list'],
  ['D9 a name below it', 'x.metadata.google.internal:443', 403, 'never_list'],
  ['D9 localhost', 'localhost:443', 403, 'never_list'],
  ['D9 a name below localhost', 'x.localhost:443', 403, 'never_list'],
  ['D10 a public address no cidr names', '93.184.216.34:443', 403, 'default_denied'],
  ['D10 private space a rule names but allowPrivate does not open', '10.0.0.5:443', 403, 'private_address'],
];

for (const [title, authority, status, code] of addresses) {
  test.serial(`${title} is refused with ${status} ${code}`, async (t) => {
    const here = stage();
    await expectRefused(t, here, await connectTo(t, here, authority), { status, code });
  });
}

test.serial('D8 an address of this very host is refused', async (t) => {
  const here = stage();
  const { networkInterfaces } = await import('node:os');
  const own = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .find((one) => !one.internal && one.family === 'IPv4');
  if (own === undefined) {
    t.pass('this host has no address but loopback');
    return;
  }
  const answer = await connectTo(t, here, `${own.address}:443`);
  t.is(answer.status, 403);
});

test.serial('D12 a name whose every answer is refused is not dialled', async (t) => {
  const here = stage();
  here.clear();
  const connection = await here.open(t, { kind: 'tunnel', authority: 'inside.acme.test:443' });
  const answer = await connection.ask(request('GET /d12 HTTP/1.1', 'Host: inside.acme.test'));
  await expectRefused(t, here, answer, { status: 403, code: 'never_list' });
});

test.serial('D18 a pin holds for exactly its name, not for one below it', async (t) => {
  const here = stage();
  const answer = await connectTo(t, here, 'x.api.acme.test:443');
  await expectRefused(t, here, answer, { status: 403, code: 'default_denied' });
});

test.serial('D7 metadata inside private space stays refused where the policy opens that space', async (t) => {
  const text = `version: 1\nname: open\nallowPrivate: [100.64.0.0/10, "fd00::/8"]\nrules:\n  - { name: a, effect: allow, cidrs: [100.64.0.0/10, "fd00::/8"] }\n`;
  const gateway = await startTestGateway({ policy: text });
  t.teardown(() => gateway.close());
  for (const authority of ['100.100.100.200:443', '[fd00:ec2::254]:443', '[fd20:ce::254]:443']) {
    const connection = await gateway.connect();
    t.teardown(() => connection.close());
    const answer = await askTunnel(connection, authority, gateway.authorization);
    t.is(answer.status, 403);
    t.regex(answer.body.toString(), /"never_list"/);
  }
});

test.serial('D17 a policy that opens more than private space is not loaded', async (t) => {
  for (const opened of ['0.0.0.0/0', '169.254.0.0/16', '127.0.0.0/8', '::/0']) {
    const text = `version: 1\nname: wide\nallowPrivate: ["${opened}"]\nrules:\n  - { name: a, effect: allow, hosts: [a.test] }\n`;
    const error = await t.throwsAsync<Error & { code?: string }>(
      startTestGateway({ policy: text }).then((gateway) => gateway.close()),
      undefined,
      opened,
    );
    t.is(error?.code, 'GATEWAY_POLICY_INVALID', opened);
  }
});

/** The parent proxy stands for the internet: it tells which address the gateway asked for and connects all of them to one upstream. */
async function outside(t: ExecutionContext, names: readonly string[]) {
  const authority = createAuthority();
  const leaf = authority.issue({ names });
  const upstream = await startUpstream({ tls: { cert: leaf.certPem, key: leaf.keyPem } });
  const parent = await startParentProxy(upstream.port);
  const gateway = await startTestGateway({ policy, resolve, parentProxy: parent.port, extraCa: authority.certPem });
  t.teardown(async () => {
    await gateway.close();
    await parent.close();
    await upstream.close();
  });
  const open = async (name: string) => {
    const connection = await gateway.connect();
    t.teardown(() => connection.close());
    t.is((await askTunnel(connection, `${name}:443`, gateway.authorization)).status, 200);
    return connection.startTls({ servername: name, ca: gateway.ca });
  };
  return { upstream, parent, gateway, open };
}

test.serial('D11 the address that was judged is the one dialled: one lookup a connection', async (t) => {
  const { parent, open } = await outside(t, ['rebind.acme.test']);
  lookups.length = 0;
  const connection = await open('rebind.acme.test');
  const answer = await connection.ask(request('GET /d11 HTTP/1.1', 'Host: rebind.acme.test'));
  t.is(answer.status, 200, answer.body.toString());
  t.deepEqual(lookups, ['rebind.acme.test']);
  t.deepEqual(parent.asked, ['93.184.216.34:443']);
});

test.serial('D11 a name that moved to loopback is refused at its next dial', async (t) => {
  const { parent, gateway, open } = await outside(t, ['rebind.acme.test']);
  lookups.length = 0;
  lookups.push('rebind.acme.test');
  const connection = await open('rebind.acme.test');
  const answer = await connection.ask(request('GET /d11 HTTP/1.1', 'Host: rebind.acme.test'));
  t.is(answer.status, 403);
  t.deepEqual(parent.asked, []);
  t.is((await gateway.audit.find((line) => line.request?.path === '/d11')).code, 'never_list');
});

test.serial('D12 of mixed answers only the good one is dialled, and the others are a finding', async (t) => {
  const { parent, gateway, open } = await outside(t, ['mixed.acme.test']);
  const connection = await open('mixed.acme.test');
  t.is((await connection.ask(request('GET /d12 HTTP/1.1', 'Host: mixed.acme.test'))).status, 200);
  t.deepEqual(parent.asked, ['93.184.216.35:443']);
  const finding = await gateway.audit.find((line) => line.kind === 'dns.finding');
  for (const dropped of ['127.0.0.1', '169.254.169.254', '10.0.0.1']) t.true(finding.text.includes(dropped), dropped);
});

test.serial('D13 the record shows the name that was asked for and the address it led to', async (t) => {
  const { gateway, open } = await outside(t, ['mixed.acme.test']);
  const connection = await open('mixed.acme.test');
  await connection.ask(request('GET /d13 HTTP/1.1', 'Host: mixed.acme.test'));
  const record = await gateway.audit.find((line) => line.request?.path === '/d13');
  t.deepEqual([record.request?.host, record.upstream?.address], ['mixed.acme.test', '93.184.216.35:443']);
});

test.serial('D14 a kept connection is not used again under a newer policy', async (t) => {
  const { upstream, gateway, open } = await outside(t, ['mixed.acme.test']);
  const connection = await open('mixed.acme.test');
  const ask = () => connection.ask(request('GET /d14 HTTP/1.1', 'Host: mixed.acme.test'));
  await ask();
  await ask();
  t.is(upstream.connections, 1);
  await gateway.reload(`${policy}\ndescription: again\n`);
  t.is((await ask()).status, 200);
  t.is(upstream.connections, 2);
});

test.serial('D14 a kept connection is not shared between callers', async (t) => {
  const { upstream, gateway, open } = await outside(t, ['mixed.acme.test']);
  const first = await open('mixed.acme.test');
  await first.ask(request('GET /d14 HTTP/1.1', 'Host: mixed.acme.test'));
  const other = await gateway.attach();
  const raw = await gateway.connect();
  t.teardown(() => raw.close());
  await askTunnel(raw, 'mixed.acme.test:443', other.authorization);
  const second = await raw.startTls({ servername: 'mixed.acme.test', ca: gateway.ca });
  t.is((await second.ask(request('GET /d14 HTTP/1.1', 'Host: mixed.acme.test'))).status, 200);
  t.is(upstream.connections, 2);
});
