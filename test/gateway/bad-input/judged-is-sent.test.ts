/** Whatever a target is made of: what was judged and recorded is, byte for byte, what the upstream gets. */
import anyTest, { type TestFn } from 'ava';
import fc from 'fast-check';
import { eventually } from '../../kit/gateway.ts';
import type { RawConnection } from '../../kit/raw-client.ts';
import { proxyRequest, request, tunnel, useStage } from './stage.ts';

const test = anyTest as TestFn;

const policy = `
version: 1
name: judged
rules:
  - { name: public, effect: allow, hosts: [api.acme.test], methods: [GET], paths: ["/pub/**"] }
  - { name: plain, effect: allow, scheme: http, hosts: [plain.acme.test], methods: [GET], paths: ["/pub/**"] }
  - { name: no-secret, effect: deny, hosts: ["**"], paths: ["/pub/secret/**"] }
`;

const stage = useStage(test, () => ({ policy, tls: { 'api.acme.test': {} }, plain: { 'plain.acme.test': {} } }));

/** Pieces of paths that servers and proxies have read differently. */
const pieces = [
  ...['/', '//', '/./', '/../', '/.', '/..', '/%2e%2e/', '/.%2E/', '%2f', '%2F..%2f', '%5c', '\\', ';', '..;', '%3b'],
  ...['pub', 'secret', '%73ecret', 'SECRET', 'a', '%61', '~', '%7e', '%c3%a9', '%25', '%252e', '%', '%zz', '%00'],
  ...['?', '&', '=', '#', ':', '@', '*', '{', '|', '"', ' ', '\t', '\u00e9'],
];
const target = fc
  .tuple(fc.constantFrom('/pub/', '/pub/a/', '/', ''), fc.array(fc.constantFrom(...pieces), { maxLength: 8 }))
  .map(([start, rest]) => start + rest.join(''));

/** Everything a careless server might decode, decoded. */
function decoded(path: string): string {
  const once = path.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return once
    .replaceAll('\\', '/')
    .replace(/;[^/]*/g, '')
    .toLowerCase();
}

for (const via of ['tunnel', 'proxy'] as const) {
  test.serial(
    `a target through the ${via} is sent as it was judged and recorded, and only when a rule allows that`,
    async (t) => {
      const here = stage();
      here.clear();
      const name = via === 'tunnel' ? 'api.acme.test' : 'plain.acme.test';
      const upstream = here.upstream(name);
      let connection: RawConnection | null = null;
      const ask = async (raw: string): Promise<number> => {
        connection ??= await here.open(t, via === 'tunnel' ? tunnel('api.acme.test:443') : { kind: 'proxy' });
        const send =
          via === 'tunnel'
            ? request(`GET ${raw} HTTP/1.1`, `Host: ${name}`)
            : here.expand(proxyRequest(`GET http://${name}${raw} HTTP/1.1`, `Host: ${name}`));
        const answer = await connection.ask(send);
        if (answer.headers.some(([key, value]) => key.toLowerCase() === 'connection' && value === 'close'))
          connection = null;
        return answer.status;
      };
      let allowed = 0;
      const property = fc.asyncProperty(target, async (raw) => {
        const before = upstream.requests.length;
        const status = await ask(raw);
        const sent = upstream.requests.slice(before);
        mustHold(sent.length === (status === 200 ? 1 : 0), `${status} and ${sent.length} sent: ${raw}`);
        mustHold([200, 400, 403, 505].includes(status), `${status} ${raw}`);
        if (status !== 200) return;
        allowed += 1;
        const [path = ''] = (sent[0]?.target ?? '').split('?');
        const segments = decoded(path).split('/').slice(1);
        mustHold(segments[0] === 'pub' && segments[1] !== 'secret', `${raw} became ${path}`);
        const isHidden = (segment: string, nth: number) =>
          segment === '.' || segment === '..' || (segment === '' && nth < segments.length - 1);
        mustHold(!segments.some(isHidden), `${raw} became ${path}`);
      });
      await fc.assert(property, { numRuns: 400 });
      t.true(allowed > 20, `${allowed} were allowed`);
      const recorded = async () =>
        (await here.gateway.audit.all()).flatMap((line) =>
          line.verdict === 'allow' && line.request?.host === name ? [line.request.path] : [],
        );
      await eventually('the last record', async () => (await recorded()).length >= upstream.requests.length);
      t.deepEqual(
        await recorded(),
        upstream.requests.map((one) => one.target.split('?')[0] ?? ''),
      );
    },
  );
}

/** Throws, so that fast-check looks for the shortest target. */
function mustHold(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(what);
}
