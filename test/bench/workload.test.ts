import test from 'ava';
import { MEASURED, MEASURED_HOSTS, measuredRequest, ORIGIN_BODY, RULE_COUNT, RULES, requestBytes } from './workload.ts';

test('RULES names each host once', (t) => {
  t.is(RULES.length, RULE_COUNT);
  t.is(new Set(RULES.map(({ host }) => host)).size, RULE_COUNT);
});

test('MEASURED names different hosts of different shapes', (t) => {
  t.is(new Set(MEASURED.map(({ host }) => host)).size, MEASURED_HOSTS);
  t.is(new Set(MEASURED.map(({ shape }) => shape.id)).size, 8);
});

test('measuredRequest() is allowed by the rule of its host, for every connection', (t) => {
  for (let connection = 0; connection < 64; connection++) {
    const request = measuredRequest(connection);
    const rule = RULES.find(({ host }) => host === request.host);
    t.true(rule?.shape.methods.includes(request.method));
    t.true(rule !== undefined && request.path.startsWith(rule.shape.prefix));
  }
});

test('ORIGIN_BODY is 200 bytes of JSON', (t) => {
  t.is(Buffer.byteLength(ORIGIN_BODY), 200);
  t.notThrows(() => JSON.parse(ORIGIN_BODY));
});

test('requestBytes() names the port in Host unless it is 443', (t) => {
  const request = { host: 'a.example', method: 'GET', path: '/x' };
  t.regex(requestBytes(request, 443).toString(), /^GET \/x HTTP\/1\.1\r\nHost: a\.example\r\n.*\r\n\r\n$/s);
  t.regex(requestBytes(request, 8443).toString(), /\r\nHost: a\.example:8443\r\n/);
});
