import test from 'ava';
import fc from 'fast-check';
import { FAILED, INCOMPLETE } from '../../../gateway/egress/http/header-block.ts';
import { RequestHead } from '../../../gateway/egress/http/request-head.ts';

/** Parses a whole text; the code of the failure, or what was read. */
function read(text: string) {
  const head = new RequestHead();
  const buf = Buffer.from(text, 'latin1');
  const end = head.parse(buf, 0, buf.length);
  if (end === INCOMPLETE) return 'incomplete';
  if (end === FAILED) return `${head.failure?.status} ${head.failure?.code}`;
  return {
    method: head.method,
    target: head.target(),
    length: head.contentLength,
    chunked: head.chunked,
    keepAlive: head.keepAlive,
    rest: buf.length - end,
  };
}

const HOST = 'Host: a\r\n';

const refused: readonly [name: string, text: string, expected: string][] = [
  ['a leading space line', ` GET / HTTP/1.1\r\n${HOST}\r\n`, '400 request_line'],
  ['an empty line first', `\r\nGET / HTTP/1.1\r\n${HOST}\r\n`, '400 request_line'],
  ['two spaces before the target', `GET  / HTTP/1.1\r\n${HOST}\r\n`, '400 request_target'],
  ['a tab in the target', `GET /a\tb HTTP/1.1\r\n${HOST}\r\n`, '400 request_target'],
  ['a non-ASCII target', `GET /\xe9 HTTP/1.1\r\n${HOST}\r\n`, '400 request_target'],
  ['HTTP/0.9', 'GET /\r\n', '400 request_target'],
  ['HTTP/1.2', `GET / HTTP/1.2\r\n${HOST}\r\n`, '505 http_version'],
  ['HTTP/2.0', `GET / HTTP/2.0\r\n${HOST}\r\n`, '505 http_version'],
  ['the h2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '505 http_version'],
  ['a lower-case version', `GET / http/1.1\r\n${HOST}\r\n`, '505 http_version'],
  ['bare LF after the request line', 'GET / HTTP/1.1\nHost: a\n\n', '400 request_line'],
  ['bare LF after a header', 'GET / HTTP/1.1\r\nHost: a\n\r\n', '400 bare_lf'],
  ['bare CR in a value', 'GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n', '400 bare_cr'],
  ['a value that ends in CR CR LF', 'GET / HTTP/1.1\r\nHost: a\r\r\n\r\n', '400 bare_cr'],
  ['NUL in a value', 'GET / HTTP/1.1\r\nHost: a\0\r\n\r\n', '400 header_value'],
  ['DEL in a value', 'GET / HTTP/1.1\r\nHost: a\x7f\r\n\r\n', '400 header_value'],
  ['space before the colon', 'GET / HTTP/1.1\r\nHost : a\r\n\r\n', '400 space_before_colon'],
  ['an empty name', 'GET / HTTP/1.1\r\n: a\r\n\r\n', '400 header_name'],
  ['a name with a non-token byte', 'GET / HTTP/1.1\r\nHo@st: a\r\n\r\n', '400 header_name'],
  ['obs-fold', `GET / HTTP/1.1\r\n${HOST}X: a\r\n b\r\n\r\n`, '400 line_folding'],
  ['no Host', 'GET / HTTP/1.1\r\n\r\n', '400 host_missing'],
  ['two Hosts', `GET / HTTP/1.1\r\n${HOST}${HOST}\r\n`, '400 host_repeated'],
  [
    'length and chunked',
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
    '400 length_and_chunked',
  ],
  [
    'two equal lengths',
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 1\r\nContent-Length: 1\r\n\r\n`,
    '400 length_repeated',
  ],
  ['a signed length', `POST / HTTP/1.1\r\n${HOST}Content-Length: +5\r\n\r\n`, '400 length_malformed'],
  ['a length list', `POST / HTTP/1.1\r\n${HOST}Content-Length: 5,5\r\n\r\n`, '400 length_malformed'],
  ['a hexadecimal length', `POST / HTTP/1.1\r\n${HOST}Content-Length: 0x5\r\n\r\n`, '400 length_malformed'],
  ['an empty length', `POST / HTTP/1.1\r\n${HOST}Content-Length:\r\n\r\n`, '400 length_malformed'],
  ['an underscored length', `POST / HTTP/1.1\r\n${HOST}Content_Length: 5\r\n\r\n`, '400 header_name'],
  ['xchunked', `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: xchunked\r\n\r\n`, '400 transfer_encoding'],
  ['gzip, chunked', `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: gzip, chunked\r\n\r\n`, '400 transfer_encoding'],
  [
    'chunked twice',
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`,
    '400 transfer_encoding',
  ],
  ['chunked on HTTP/1.0', `POST / HTTP/1.0\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`, '400 transfer_encoding'],
  ['another expectation', `POST / HTTP/1.1\r\n${HOST}Expect: 200-ok\r\n\r\n`, '417 expectation'],
  ['too many headers', `GET / HTTP/1.1\r\n${HOST}${'X: y\r\n'.repeat(200)}\r\n`, '431 too_many_headers'],
  ['a method without end', 'A'.repeat(40), '400 method'],
];

for (const [name, text, expected] of refused) {
  test(`RequestHead.parse() refuses ${name}`, (t) => t.is(read(text), expected));
}

test('RequestHead.parse() reads a request and leaves what follows', (t) => {
  t.deepEqual(read(`POST /x?y HTTP/1.1\r\nhOsT:  a \r\nContent-Length: 12\r\nConnection: close\r\n\r\nbody`), {
    method: 'POST',
    target: '/x?y',
    length: 12,
    chunked: false,
    keepAlive: false,
    rest: 4,
  });
});

test('RequestHead.parse() never throws and never reads beyond what it says', (t) => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array)),
    fc
      .array(
        fc.constantFrom(
          'GET ',
          '/',
          ' HTTP/1.1',
          '\r\n',
          'Host: a',
          ':',
          '\n',
          '\r',
          ' ',
          'Content-Length: 1',
          'x',
          '\0',
        ),
        { maxLength: 20 },
      )
      .map((parts) => Buffer.from(parts.join(''), 'latin1')),
  );
  fc.assert(
    fc.property(bytes, (buf) => {
      const head = new RequestHead();
      const end = head.parse(buf, 0, buf.length);
      return (
        end <= buf.length &&
        (end !== FAILED || head.failure !== null) &&
        (end <= 0 ||
          buf.subarray(end - 4, end).equals(Buffer.from('\r\n\r\n')) ||
          buf.subarray(end - 2, end).equals(Buffer.from('\r\n')))
      );
    }),
  );
  t.pass();
});

test('RequestHead.parse() says incomplete for every beginning of a good head, and the same for the whole', (t) => {
  const text = `GET /a/b?c=d HTTP/1.1\r\n${HOST}Accept: */*\r\nX-Long: ${'v'.repeat(50)}\r\n\r\n`;
  for (let length = 0; length < text.length; length++) t.is(read(text.slice(0, length)), 'incomplete', `at ${length}`);
  t.is(typeof read(text), 'object');
});

test('RequestHead.isConnectionOption() knows every option of every line, however many', (t) => {
  const head = new RequestHead();
  const many = Array.from({ length: 9_000 }, (_, nth) => `o${nth}`).join(',');
  const lines = Array.from({ length: 140 }, (_, nth) => `o${nth}x: 1\r\n`).join('');
  const buf = Buffer.from(
    `GET / HTTP/1.1\r\nHost: a\r\nConnection: ${many}\r\nConnection: X-One , close\r\n${lines}x-one: 1\r\nO7: 1\r\n\r\n`,
  );
  const started = performance.now();
  t.true(head.parse(buf, 0, buf.length) > 0);
  const options = Array.from({ length: head.headers.count }, (_, nth) => head.isConnectionOption(nth));
  // Taken apart anew for each line this took most of a second.
  t.true(performance.now() - started < 250);
  t.deepEqual(options.slice(-2), [true, true]);
  t.is(options.filter(Boolean).length, 2);
  t.false(head.keepAlive);
});
