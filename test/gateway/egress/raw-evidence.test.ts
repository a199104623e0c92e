import test from 'ava';
import fc from 'fast-check';
import { MAX_RAW, rawEvidence, withoutUserinfo } from '../../../gateway/egress/raw-evidence.ts';

const cases: readonly [name: string, bytes: string, kept: string][] = [
  ['keeps a request line', 'GET /a/b HTTP/1.1\r\n', 'GET /a/b HTTP/1.1\r\n'],
  ['masks query values', 'GET /a?b=c&d=e%20f HTTP/1.1\r\n', 'GET /a?b=*&d=* HTTP/1.1\r\n'],
  ['masks a query value with a space', 'GET /a?b=c d HTTP/1.1\r\n', 'GET /a?b=* * HTTP/1.1\r\n'],
  ['masks user information', 'GET http://u:p@h/ HTTP/1.1\r\n', 'GET http://*@h/ HTTP/1.1\r\n'],
  ['masks user information of an authority', 'CONNECT u:p@h:443 HTTP/1.1\r\n', 'CONNECT *@h:443 HTTP/1.1\r\n'],
  [
    'keeps framing',
    'P / H\r\nContent-Length: +4\r\ntransfer_encoding : x\r\n',
    'P / H\r\nContent-Length: +4\r\ntransfer_encoding : x\r\n',
  ],
  ['masks a credential', 'G / H\r\nAuthorization: Basic dTpw\r\n', 'G / H\r\nAuthorization: * *\r\n'],
  ['masks a folded credential', 'G / H\r\nX-Key:\r\n abc\r\n', 'G / H\r\nX-Key:\r\n *\r\n'],
  ['masks behind a bare LF', 'G / H\nCookie: a=b\n', 'G / H\nCookie: *\n'],
  ['keeps control bytes', 'G / H\r\nX: a\0b\x1bc\r\n', 'G / H\r\nX: *\0*\x1b*\r\n'],
];

for (const [name, bytes, kept] of cases) {
  test(`rawEvidence() ${name}`, (t) => {
    t.is(rawEvidence(Buffer.from(bytes, 'latin1')), kept);
  });
}

test('rawEvidence() never throws, never grows and never shows the value of a line that is not framing', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
      t.true(rawEvidence(Buffer.from(bytes)).length <= MAX_RAW);
    }),
  );
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z0-9]{8,40}$/), fc.constantFrom('\r\n', '\n', '\r'), (secret, end) => {
      const text = rawEvidence(Buffer.from(`GET /?k=${secret} HTTP/1.1${end}X-Token: ${secret}${end}A: ${secret}`));
      t.false(text.includes(secret));
    }),
  );
});

test('withoutUserinfo() leaves a path with an at sign alone', (t) => {
  t.is(withoutUserinfo('/@scope/name'), '/@scope/name');
  t.is(withoutUserinfo('https://h/a@b'), 'https://h/a@b');
});
