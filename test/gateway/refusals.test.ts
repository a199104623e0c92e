/** A refusal as its caller and its operator meet it: one body on every way in, and an id that finds the record. */
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { header } from '../kit/http-message.ts';
import type { RawResponse } from '../kit/raw-client.ts';
import { proxy, proxyRequest, request, tunnel, useStage, type Via } from './bad-input/stage.ts';
import { command } from './cli/command-line.ts';

const test = anyTest as TestFn;

const reason = 'Agents have no business here.';
const policy = `
version: 1
name: refusals
owner: platform-security
rules:
  - { name: all, effect: allow, hosts: [api.acme.test] }
  - { name: plain, effect: allow, scheme: http, hosts: [plain.acme.test] }
  - { name: no-admin, effect: deny, hosts: [api.acme.test, plain.acme.test], paths: ["/admin/**"], reason: ${reason} }
  - { name: shut, effect: deny, hosts: [shut.acme.test], reason: ${reason} }
`;

const stage = useStage(test, () => ({ policy, tls: { 'api.acme.test': {} }, plain: { 'plain.acme.test': {} } }));

const ways: readonly [way: string, via: Via, send: string, rule: string][] = [
  ['CONNECT', proxy, proxyRequest('CONNECT shut.acme.test:443 HTTP/1.1', 'Host: shut.acme.test:443'), 'shut'],
  [
    'a request inside TLS',
    tunnel('api.acme.test:443'),
    request('GET /admin/x HTTP/1.1', 'Host: api.acme.test'),
    'no-admin',
  ],
  [
    'plain HTTP',
    proxy,
    proxyRequest('GET http://plain.acme.test/admin/x HTTP/1.1', 'Host: plain.acme.test'),
    'no-admin',
  ],
];

interface RefusalBody {
  readonly error: Readonly<Record<'code' | 'rule' | 'reason' | 'hint' | 'requestId', string>>;
}

function bodyOf(t: ExecutionContext, answer: RawResponse): RefusalBody['error'] {
  t.is(header(answer.headers, 'content-type'), 'application/json');
  const { error, ...rest }: RefusalBody = JSON.parse(answer.body.toString());
  t.deepEqual(rest, {});
  t.deepEqual(Object.keys(error), ['code', 'rule', 'reason', 'hint', 'requestId']);
  return error;
}

for (const [way, via, send, rule] of ways) {
  test.serial(`${way} that is refused says code, rule, reason, hint and an id that audit tail finds`, async (t) => {
    const here = stage();
    const connection = await here.open(t, via);
    connection.write(here.expand(send));
    const answer = await connection.readResponse('GET');
    t.is(answer.status, 403);
    const { hint, requestId, ...error } = bodyOf(t, answer);
    t.deepEqual(error, { code: 'policy_denied', rule, reason });
    t.regex(hint, new RegExp(`platform-security .* can change rule ${rule} \\(line \\d+\\)`));
    t.is(header(answer.headers, 'x-sallyport-request-id'), requestId);
    await here.gateway.audit.find((line) => line.id === requestId);
    const found = await command([
      'audit',
      'tail',
      '--home',
      here.gateway.home,
      '--id',
      requestId.toLowerCase(),
      '--json',
    ]);
    t.is(found.code, 0, found.stderr);
    t.like(JSON.parse(found.stdout), { id: requestId, verdict: 'deny', code: 'policy_denied', rule, reason });
    const line = await command(['audit', 'tail', '--home', here.gateway.home, '--id', requestId]);
    t.regex(
      line.stdout,
      /^\S+ {2}deny {2}http\.request {2}\S+ {2}(CONNECT shut\.acme\.test:443|GET https?:\/\/\S+\/admin\/x) {2}rule=/,
    );
    t.is(line.stdout.trim().split('\n').length, 1);
  });
}

test.serial('the id of a refused HEAD request is in its header, and there is no body', async (t) => {
  const here = stage();
  const connection = await here.open(t, tunnel('api.acme.test:443'));
  connection.write(request('HEAD /admin/x HTTP/1.1', 'Host: api.acme.test'));
  const answer = await connection.readResponse('HEAD');
  t.is(answer.status, 403);
  const id = header(answer.headers, 'x-sallyport-request-id');
  t.is((await here.gateway.audit.find((line) => line.id === id)).rule, 'no-admin');
});

test.serial('audit tail --id exits 1 when no record has the id', async (t) => {
  const id = '01J9ZK3V8M2Q4R6T8W0Y1A3B5C';
  const outcome = await command(['audit', 'tail', '--home', stage().gateway.home, '--id', id]);
  t.is(outcome.code, 1);
  t.is(outcome.stdout, '');
  t.true(outcome.stderr.includes(id));
});
