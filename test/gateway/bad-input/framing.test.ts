/** BAD-INPUT rows F1–F3, F10, F20: heads whose end, lines or version two parsers would read differently. */
import anyTest, { type TestFn } from 'ava';
import { header } from '../../kit/http-message.ts';
import {
  expectRefused,
  proxy,
  proxyRequest,
  type RefusedCase,
  request,
  testRefused,
  tunnel,
  useStage,
} from './stage.ts';

const test = anyTest as TestFn;

const policy = `
version: 1
name: framing
rules:
  - name: anything
    effect: allow
    hosts: [api.acme.test]
  - name: plain
    effect: allow
    scheme: http
    hosts: [plain.acme.test]
  - name: nothing-secret
    effect: deny
    hosts: ["**"]
    paths: ["/secret/**"]
    reason: Nobody reads the secrets.
credentials:
  - name: token
    secret: env:FRAMING_TOKEN
    bind: { hosts: [api.acme.test], paths: ["/bound/**"] }
    inject: { header: Authorization, format: "Bearer {secret}" }
    onClientCredential: replace
`;

const stage = useStage(test, () => ({
  policy,
  env: { FRAMING_TOKEN: 'framing-token-value-0123456789' },
  limits: { headMs: 1_000, idleMs: 1_500, stallMs: 1_500 },
  tls: { 'api.acme.test': {} },
  plain: { 'plain.acme.test': {} },
}));

const inApi = tunnel('api.acme.test:443');
const host = 'Host: api.acme.test';

/** title, header lines behind Host, code. Each is tried in a tunnel and through the plain proxy. */
const lines: readonly [title: string, lines: readonly string[], code: string][] = [
  [
    'F1 Content-Length and Transfer-Encoding',
    ['Content-Length: 4', 'Transfer-Encoding: chunked'],
    'length_and_chunked',
  ],
  [
    'F1 Transfer-Encoding and Content-Length',
    ['Transfer-Encoding: chunked', 'Content-Length: 4'],
    'length_and_chunked',
  ],
  ['F1 two different Content-Length', ['Content-Length: 4', 'Content-Length: 5'], 'length_repeated'],
  ['F1 two equal Content-Length', ['Content-Length: 4', 'Content-Length: 4'], 'length_repeated'],
  ['F1 Content-Length +4', ['Content-Length: +4'], 'length_malformed'],
  ['F1 Content-Length -4', ['Content-Length: -4'], 'length_malformed'],
  ['F1 Content-Length 4,4', ['Content-Length: 4,4'], 'length_malformed'],
  ['F1 Content-Length 0x4', ['Content-Length: 0x4'], 'length_malformed'],
  ['F1 Content-Length 4 4', ['Content-Length: 4 4'], 'length_malformed'],
  ['F1 an empty Content-Length', ['Content-Length:'], 'length_malformed'],
  ['F1 a Content-Length above 2^53', ['Content-Length: 99999999999999999999'], 'length_malformed'],
  ['F1 Content_Length', ['Content_Length: 4'], 'header_name'],
  ['F2 Transfer-Encoding xchunked', ['Transfer-Encoding: xchunked'], 'transfer_encoding'],
  ['F2 Transfer-Encoding chunked, chunked', ['Transfer-Encoding: chunked, chunked'], 'transfer_encoding'],
  ['F2 two Transfer-Encoding lines', ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], 'transfer_encoding'],
  ['F2 Transfer-Encoding gzip, chunked', ['Transfer-Encoding: gzip, chunked'], 'transfer_encoding'],
  ['F2 Transfer-Encoding chunked;x', ['Transfer-Encoding: chunked;x'], 'transfer_encoding'],
  ['F2 Transfer-Encoding identity', ['Transfer-Encoding: identity'], 'transfer_encoding'],
  ['F2 an empty Transfer-Encoding', ['Transfer-Encoding:'], 'transfer_encoding'],
  ['F2 a vertical tab before chunked', ['Transfer-Encoding: \x0bchunked'], 'header_value'],
  ['F2 a folded Transfer-Encoding', ['Transfer-Encoding:', ' chunked'], 'line_folding'],
  ['F2 a folded line', ['X-A: b', '\tc'], 'line_folding'],
  ['F3 a bare LF inside a value', ['X-A: b\nX-B: c'], 'bare_lf'],
  ['F3 a bare CR inside a value', ['X-A: b\rX-B: c'], 'bare_cr'],
  ['F3 a value that ends in CR', ['X-A: b\r'], 'bare_cr'],
  ['F3 a NUL in a value', ['X-A: b\0c'], 'header_value'],
  ['F3 a space before the colon', ['X-A : b'], 'space_before_colon'],
  ['F3 a space before the colon of Content-Length', ['Content-Length : 4'], 'space_before_colon'],
  ['F3 a tab before the colon', ['Transfer-Encoding\t: chunked'], 'space_before_colon'],
  ['F3 an empty name', [': b'], 'header_name'],
  ['F3 a name with a non-token byte', ['X(A: b'], 'header_name'],
  ['F3 a non-ASCII name', ['X\u00e9: b'], 'header_name'],
  ['F3 a line without colon', ['X-A'], 'header_name'],
];
testRefused(
  test,
  stage,
  lines.flatMap(([title, extra, code]): RefusedCase[] => [
    { title, via: inApi, send: `${request('POST /x HTTP/1.1', host, ...extra)}body`, status: 400, code, closes: true },
    {
      title: `${title} through the plain proxy`,
      via: proxy,
      send: `POST http://plain.acme.test/x HTTP/1.1\r\n{auth}Host: plain.acme.test\r\n${extra.join('\r\n')}\r\n\r\nbody`,
      status: 400,
      code,
      closes: true,
    },
  ]),
);

const starts: readonly [title: string, bytes: string, status: number, code: string][] = [
  ['F2 a request line after white space', ` GET / HTTP/1.1\r\n${host}\r\n\r\n`, 400, 'request_line'],
  ['F3 a first header line after a space', `GET / HTTP/1.1\r\n X: y\r\n${host}\r\n\r\n`, 400, 'line_folding'],
  ['F3 a request line that ends in LF', `GET / HTTP/1.1\n${host}\r\n\r\n`, 400, 'request_line'],
  ['F3 a head that ends in LF LF', `GET / HTTP/1.1\r\n${host}\n\n`, 400, 'bare_lf'],
  ['F3 two spaces in the request line', `GET  / HTTP/1.1\r\n${host}\r\n\r\n`, 400, 'request_target'],
  ['F3 a tab in the request line', `GET\t/ HTTP/1.1\r\n${host}\r\n\r\n`, 400, 'request_line'],
  ['F10 HTTP/0.9', 'GET /\r\n', 400, 'request_target'],
  ['F10 HTTP/1.2', `GET / HTTP/1.2\r\n${host}\r\n\r\n`, 505, 'http_version'],
  ['F10 HTTP/2.0', `GET / HTTP/2.0\r\n${host}\r\n\r\n`, 505, 'http_version'],
  ['F10 http/1.1', `GET / http/1.1\r\n${host}\r\n\r\n`, 505, 'http_version'],
  ['F10 HTTP/1.10', `GET / HTTP/1.10\r\n${host}\r\n\r\n`, 400, 'request_line'],
  ['F10 the HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505, 'http_version'],
  [
    'F10 HTTP/1.0 with Transfer-Encoding',
    `POST / HTTP/1.0\r\n${host}\r\nTransfer-Encoding: chunked\r\n\r\n`,
    400,
    'transfer_encoding',
  ],
  [
    'F20 a header of 100 KiB',
    request('GET / HTTP/1.1', host, `X-Big: ${'a'.repeat(100 * 1024)}`),
    431,
    'head_too_large',
  ],
  [
    'F20 2000 headers',
    request('GET / HTTP/1.1', host, ...Array.from({ length: 2000 }, (_, n) => `X-${n}: y`)),
    431,
    'too_many_headers',
  ],
];
testRefused(
  test,
  stage,
  starts.map(([title, send, status, code]): RefusedCase => ({ title, via: inApi, send, status, code, closes: true })),
);

test.serial('F20 a head that comes too slowly is ended with 408', async (t) => {
  const here = stage();
  here.clear();
  const connection = await here.open(t, inApi);
  connection.write('GET /slow HTTP/1.1\r\n');
  const answer = await connection.readResponse();
  await expectRefused(t, here, answer, { status: 408, code: 'head_timeout' });
  await connection.readToClose();
});

test.serial('F10 HTTP/1.0 without Host is served through the plain proxy and closed', async (t) => {
  const here = stage();
  here.clear();
  const connection = await here.open(t, proxy);
  connection.write(here.expand(proxyRequest('GET http://plain.acme.test/old HTTP/1.0')));
  t.is((await connection.readResponse()).status, 200);
  await connection.readToClose();
  t.is(header(here.upstream('plain.acme.test').requests[0]?.headers ?? [], 'host'), 'plain.acme.test');
});
