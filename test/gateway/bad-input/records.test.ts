/** BAD-INPUT row C8: what must never reach a record, whatever a request holds. */
import anyTest, { type TestFn } from 'ava';
import { expectRefused, proxy, proxyRequest, request, type Stage, tunnel, useStage } from './stage.ts';

const test = anyTest as TestFn;

const secret = 'credential-value-0123456789abcdef';

const policy = `
version: 1
name: records
rules:
  - name: all
    effect: allow
    hosts: [api.acme.test, other.acme.test]
  - name: plain
    effect: allow
    scheme: http
    hosts: [plain.acme.test]
credentials:
  - name: token
    secret: env:RECORDS_TOKEN
    bind: { hosts: [api.acme.test], methods: [GET], paths: ["/bound/**"] }
    inject: { header: Authorization, format: "Bearer {secret}" }
`;

const stage = useStage(test, () => ({
  policy,
  env: { RECORDS_TOKEN: secret },
  tls: { 'api.acme.test': {}, 'other.acme.test': {} },
  plain: { 'plain.acme.test': {} },
}));

const inApi = tunnel('api.acme.test:443');
const host = 'Host: api.acme.test';

/** The whole log as text: a secret in it is a secret in every sink. */
async function logText(here: Stage): Promise<string> {
  return (await here.gateway.audit.all()).map((line) => line.text).join('\n');
}

test.serial('C8 a secret in path, query, header or name never reaches the log', async (t) => {
  const here = stage();
  here.clear();
  // Injected once, so that the gateway knows the value.
  const known = await here.open(t, inApi);
  await known.ask(request('GET /bound/known HTTP/1.1', host));
  for (const send of [
    request(`GET /free/${secret} HTTP/1.1`, host),
    request(`GET /free/q?token=${secret}&${secret}=1 HTTP/1.1`, host),
    request(`GET /free/h HTTP/1.1`, host, `X-Note: ${secret}`),
    request(`GET /free/bad HTTP/1.1`, host, `${secret} : x`),
    request(`${secret} /free/m HTTP/1.1`, host),
    request('GET /free/host HTTP/1.1', `Host: ${secret}.test`),
  ]) {
    const connection = await here.open(t, inApi);
    await connection.ask(send);
  }
  const named = await here.open(t, proxy);
  const answer = await named.ask(
    `CONNECT ${secret}.test:443 HTTP/1.1\r\nHost: ${secret}.test:443\r\n${here.gateway.authorization}\r\n`,
  );
  const { error } = JSON.parse(answer.body.toString()) as { error: { requestId: string } };
  await here.gateway.audit.find((line) => line.id === error.requestId);
  t.false((await logText(here)).includes(secret));
});

test.serial('C8 query values are not in the log even when nobody knows them as secrets', async (t) => {
  const here = stage();
  here.clear();
  const mark = await here.gateway.audit.mark();
  const connection = await here.open(t, inApi);
  await connection.ask(request('GET /free/q?access_token=not-known-to-anybody&b HTTP/1.1', host));
  const record = await here.gateway.audit.find((line) => line.request?.path === '/free/q', mark);
  t.false(record.text.includes('not-known-to-anybody'));
  t.regex(record.request?.query ?? '', /access_token/);
});

test.serial('C8 the proxy credential of the caller is not in the log', async (t) => {
  const here = stage();
  const token = here.gateway.caller.token;
  const connection = await here.open(t, proxy);
  await connection.ask(here.expand(`GET http://plain.acme.test/x HTTP/1.1\r\n{auth}Host : plain.acme.test\r\n\r\n`));
  const mark = await here.gateway.audit.mark();
  const next = await here.open(t, proxy);
  await next.ask(here.expand(proxyRequest('GET http://plain.acme.test/after HTTP/1.1', 'Host: plain.acme.test')));
  await here.gateway.audit.find((line) => line.request?.path === '/after', mark);
  const text = await logText(here);
  t.false(text.includes(token));
  t.false(text.includes(btoa(`${here.gateway.caller.id}:${token}`)));
});

test.serial(
  'C8 a head that does not parse is recorded without the values of its query and credential lines',
  async (t) => {
    const here = stage();
    here.clear();
    const lines = [
      'Authorization: Bearer client-own-value',
      'Cookie: session=client-own-value',
      'X-Api-Key: client-own-value',
      'X-Bad : y',
    ];
    const connection = await here.open(t, tunnel('other.acme.test:443'));
    const answer = await connection.ask(
      request('GET /c8?token=client-own-value HTTP/1.1', 'Host: other.acme.test', ...lines),
    );
    const record = await expectRefused(t, here, answer, { status: 400, code: 'space_before_colon' });
    t.false(record.text.includes('client-own-value'), record.text);
    t.regex(record.raw ?? '', /c8/);
  },
);

test.serial('C8 user information in a target or authority is not in the log', async (t) => {
  const here = stage();
  here.clear();
  for (const send of [
    proxyRequest('GET http://user:client-own-value@plain.acme.test/ HTTP/1.1', 'Host: plain.acme.test'),
    proxyRequest('CONNECT user:client-own-value@api.acme.test:443 HTTP/1.1', 'Host: api.acme.test:443'),
    proxyRequest('GET http://user:client-own-value@plain.acme.test/ HTTP/1.1', 'Host : plain.acme.test'),
  ]) {
    const connection = await here.open(t, proxy);
    const answer = await connection.ask(here.expand(send));
    t.is(answer.status, 400);
    const { error } = JSON.parse(answer.body.toString()) as { error: { requestId: string } };
    const record = await here.gateway.audit.find((line) => line.id === error.requestId);
    t.false(record.text.includes('client-own-value'), record.text);
  }
});

test.serial('C8 a refusal that holds the request text never repeats a secret', async (t) => {
  const here = stage();
  const connection = await here.open(t, inApi);
  const answer = await connection.ask(request(`GET /../${secret} HTTP/1.1`, host));
  t.is(answer.status, 400);
  t.false(answer.body.toString().includes(secret));
});
