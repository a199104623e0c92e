import test from 'ava';
import fc from 'fast-check';
import { asciiLine, canonicalJson } from '../../../gateway/audit/canonical.ts';
import { cleanText, textLimits } from '../../../gateway/audit/clean-record.ts';
import { eventFields } from '../../../gateway/audit/event-text.ts';
import { maxLineBytes } from '../../../gateway/audit/files.ts';
import { RequestText } from '../../../gateway/audit/request-text.ts';
import type { RequestRecord } from '../../../gateway/audit/types.ts';
import { record } from './fixture.ts';

const chain = { seq: 42, time: '2026-01-02T03:04:05.678901Z', prev: 'e'.repeat(64) };

function build(from: RequestRecord, redact?: (text: string) => string): { text: string; isAscii: boolean } {
  const writer = new RequestText('n1', redact);
  writer.build(from, chain);
  return { text: writer.head + writer.tail, isAscii: writer.isAscii };
}

/** The same record, brought to canonical text by the generic walk. */
function generic(from: RequestRecord): string {
  return canonicalJson({ ...from, ...chain, v: 1, node: 'n1' });
}

test('RequestText gives the golden text when the record is full', (t) => {
  t.is(
    build(
      record({
        request: { method: 'GET', scheme: 'https', host: 'a.test', port: 443, path: '/x', query: null, bytes: 0 },
      }),
    ).text,
    '{"code":"allowed","conn":{"alpn":"http/1.1","sni":"api.example.test","src":"127.0.0.1:50000","tls":"TLSv1.3","via":"connect"},' +
      '"credential":{"name":"gh","slots":["authorization"],"version":"3"},"id":"01HZXW8K5QJ4F6Y7Z8A9BCDEFG","kind":"http.request","node":"n1",' +
      `"policy":{"digest":"${'d'.repeat(64)}","generation":7,"name":"default"},"prev":"${'e'.repeat(64)}","raw":null,` +
      '"reason":"rule github allows it","redactions":0,"request":{"bytes":0,"host":"a.test","method":"GET","path":"/x","port":443,"query":null,"scheme":"https"},' +
      '"response":{"bytes":5120,"durationMs":14.75,"firstByteMs":12.25,"status":200},"rule":"github",' +
      '"sandbox":{"id":"sb-1","labels":{"app":"web","team":"red"}},"seq":42,"time":"2026-01-02T03:04:05.678901Z",' +
      `"upstream":{"address":"192.0.2.7:443","certSha256":"${'c'.repeat(64)}","connectMs":1.5,"tls":"TLSv1.3"},"v":1,"verdict":"allow"}`,
  );
});

test('RequestText writes null when parts are absent', (t) => {
  const bare = record({
    sandbox: null,
    policy: null,
    rule: null,
    request: null,
    raw: 'GET / HTTP/9\r\n\u001b[2J',
    upstream: null,
    response: null,
    credential: null,
    conn: { via: 'absolute', src: 'unix', sni: null, alpn: null, tls: null },
  });
  t.is(build(bare).text, generic(bare));
  t.true(build(bare).text.includes('"raw":"GET / HTTP/9\\r\\n\\u001b[2J"'));
});

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.string({ unit: 'grapheme', maxLength: 200 }),
  fc.constantFrom('"', '\\', '\r\n', '\u2028', '\u001b[31m', '\u0085', '\u007f', '', '__proto__', '","hash":"'),
);
const anyNumber = fc.double({ noNaN: true, noDefaultInfinity: true });
const nullable = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(of, { nil: null });
const anyRecord: fc.Arbitrary<RequestRecord> = fc.record({
  kind: fc.constantFrom('http.request', 'tcp.connect', 'tls.handshake'),
  id: anyText,
  sandbox: nullable(fc.record({ id: anyText, labels: fc.dictionary(anyText, anyText, { maxKeys: 8 }) })),
  policy: nullable(fc.record({ name: anyText, digest: anyText, generation: fc.nat() })),
  verdict: fc.constantFrom('allow', 'deny', 'ask', 'observe-deny', 'error'),
  rule: nullable(anyText),
  code: anyText,
  reason: anyText,
  conn: fc.record({
    via: fc.constantFrom('connect', 'absolute', 'transparent', 'socks', 'dns', 'ingress'),
    src: anyText,
    sni: nullable(anyText),
    alpn: nullable(anyText),
    tls: nullable(anyText),
  }),
  request: nullable(
    fc.record({
      method: anyText,
      scheme: anyText,
      host: anyText,
      port: fc.nat(65535),
      path: anyText,
      query: nullable(anyText),
      bytes: fc.nat(),
    }),
  ),
  raw: nullable(anyText),
  upstream: nullable(
    fc.record({ address: anyText, tls: nullable(anyText), certSha256: nullable(anyText), connectMs: anyNumber }),
  ),
  response: nullable(
    fc.record({ status: fc.nat(999), bytes: fc.nat(), firstByteMs: anyNumber, durationMs: anyNumber }),
  ),
  credential: nullable(fc.record({ name: anyText, version: anyText, slots: fc.array(anyText, { maxLength: 4 }) })),
  redactions: fc.nat(),
});

test('RequestText equals the generic canonical form byte for byte when strings are arbitrary', (t) => {
  fc.assert(
    fc.property(anyRecord, (from) => {
      const { text, isAscii } = build(from);
      t.is(text, generic(from));
      t.is(isAscii, /^[\x20-\x7e]*$/.test(text));
      const line = asciiLine(text);
      t.regex(line, /^[\x20-\x7e]*$/);
      t.deepEqual(JSON.parse(line), JSON.parse(JSON.stringify({ ...from, ...chain, v: 1, node: 'n1' })));
    }),
    { numRuns: 300 },
  );
});

test('RequestText leaves no half of a secret when the cut would go through it', (t) => {
  const redact = (text: string): string => text.replaceAll('s3cr3t-token', '[redacted:k]');
  const from = record({ reason: `${'r'.repeat(textLimits.reason - 6)}s3cr3t-token` });
  t.false(build(from, redact).text.includes('s3cr3t'));
});

test('RequestText stays canonical when one writer sees changing and repeated objects', (t) => {
  const writer = new RequestText('n1');
  const odd = { id: 's\u2028', labels: { k: '\u0000' } };
  const plain = { id: 's', labels: {} };
  const conn = { via: 'connect', src: 'unix', sni: 'caf\u00e9"', alpn: null, tls: null } as const;
  for (const sandbox of [odd, plain, odd, odd, null, plain]) {
    const from = record(sandbox === plain ? { sandbox } : { sandbox, conn });
    writer.build(from, chain);
    t.is(writer.head + writer.tail, generic(from));
    t.is(writer.isAscii, /^[\x20-\x7e]*$/.test(generic(from)));
  }
});

test('RequestText cuts and says how much when a string is too long', (t) => {
  const from = record({ reason: 'r'.repeat(textLimits.reason + 9), rule: 'x'.repeat(textLimits.other) });
  const parsed = JSON.parse(build(from).text);
  t.is(parsed.reason, `${'r'.repeat(textLimits.reason)}[cut 9]`);
  t.is(parsed.rule, 'x'.repeat(textLimits.other));
});

test('RequestText makes U+FFFD of it when a surrogate is alone, also at the cut', (t) => {
  t.is(JSON.parse(build(record({ rule: 'a\ud800b' })).text).rule, 'a\ufffdb');
  t.is(cleanText('ab\ud83d\ude00', 3), 'ab\ufffd[cut 1]');
});

test('RequestText writes null when a number is not finite', (t) => {
  const parsed = JSON.parse(
    build(
      record({ response: { status: 200, bytes: Number.NaN, firstByteMs: Number.POSITIVE_INFINITY, durationMs: 1 } }),
    ).text,
  );
  t.deepEqual(parsed.response, { status: 200, bytes: null, firstByteMs: null, durationMs: 1 });
});

test('RequestText stays below the line limit when every string is as long and as odd as can be', (t) => {
  const long = '\u2028'.repeat(5000);
  const labels = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`${i}${long}`, long]));
  const { text } = build(
    record({
      sandbox: { id: long, labels },
      raw: long,
      reason: long,
      request: { method: long, scheme: long, host: long, port: 1, path: long, query: long, bytes: 1 },
      credential: { name: long, version: long, slots: Array.from({ length: 100 }, () => long) },
    }),
  );
  t.true(asciiLine(text).length < maxLineBytes);
});

const secrets: [name: string, secret: string][] = [
  ['plain', 's3cr3t-token'],
  ['with a quote', 's3"cr\\et'],
  ['not ASCII', 'gehe\u00edm'],
];
for (const [name, secret] of secrets) {
  test(`RequestText leaves no secret in any string from outside when the secret is ${name}`, (t) => {
    const redact = (text: string): string => text.replaceAll(secret, '[redacted:k]');
    const from = record({
      raw: `x${secret}x`,
      reason: secret,
      conn: { via: 'connect', src: '127.0.0.1:1', sni: `${secret}.test`, alpn: null, tls: null },
      request: {
        method: 'GET',
        scheme: 'https',
        host: 'h',
        port: 1,
        path: `/${secret}`,
        query: `a=${secret}`,
        bytes: 0,
      },
    });
    const parsed = JSON.parse(build(from, redact).text);
    t.false(JSON.stringify(parsed).includes(JSON.stringify(secret).slice(1, -1)));
    t.is(parsed.request.path, '/[redacted:k]');
    t.is(build(record(), redact).text, build(record()).text);
  });
}

test('eventFields() gives bounded canonical JSON when the detail is anything', (t) => {
  fc.assert(
    fc.property(
      fc.anything({ withBigInt: true, withDate: true, withMap: true, withTypedArray: true, maxDepth: 6 }),
      (detail) => {
        // The type is lied to on purpose: events come from many places and none may break the log.
        const fields = eventFields({ kind: 'admin.start', detail: { detail } as Record<string, unknown> });
        const text = fields.get('detail') ?? '';
        t.is(canonicalJson(JSON.parse(text)), text);
      },
    ),
  );
});

test('eventFields() ends when the detail holds itself, and says the size when it is too large', (t) => {
  const loop: Record<string, unknown> = {};
  loop.self = loop;
  t.notThrows(() => eventFields({ kind: 'admin.start', detail: loop }));
  const huge = { all: Array.from({ length: 100 }, () => 'x'.repeat(2000)) };
  t.regex(eventFields({ kind: 'admin.start', detail: huge }).get('detail') ?? '', /^\{"cutChars":\d+\}$/);
});
