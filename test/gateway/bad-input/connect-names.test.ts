/** BAD-INPUT rows H9–H19 in a CONNECT target: hosts that hide something, or are no names. */
import anyTest, { type TestFn } from 'ava';
import { auth, expectRefused, proxy, useStage } from './stage.ts';

const test = anyTest as TestFn;

const policy = `
version: 1
name: names
rules:
  - name: read
    effect: allow
    hosts: [api.acme.test, "*.wild.acme.test"]
`;

const stage = useStage(test, () => ({ policy, tls: { 'api.acme.test': {}, 'wild.acme.test': {} } }));

/** CONNECT targets: title, authority as sent, status, code. */
const connects: readonly [title: string, authority: string, status: number, code: string][] = [
  ['H9 userinfo in CONNECT', 'api.acme.test@evil.test:443', 400, 'authority_userinfo'],
  ['H10 a backslash in CONNECT', 'api.acme.test\\evil.test:443', 400, 'host_malformed'],
  ['H10 a hash in CONNECT', 'api.acme.test#evil.test:443', 400, 'host_malformed'],
  ['H10 a question mark in CONNECT', 'api.acme.test?evil.test:443', 400, 'host_malformed'],
  ['H10 a slash in CONNECT', 'api.acme.test/x:443', 400, 'host_malformed'],
  ['H10 a space in CONNECT', 'api.acme.test evil.test:443', 400, 'request_line'],
  ['H10 a tab in CONNECT', 'api.acme.test\tevil.test:443', 400, 'request_target'],
  ['H11 a NUL in CONNECT', 'api.acme.test\0.evil.test:443', 400, 'request_target'],
  ['H11 a control byte in CONNECT', 'api.acme.test\x01:443', 400, 'request_target'],
  ['H11 a DEL in CONNECT', 'api.acme.test\x7f:443', 400, 'request_target'],
  ['H12 %2e in CONNECT', 'api%2eacme.test:443', 400, 'host_malformed'],
  ['H12 %00 in CONNECT', 'api.acme.test%00.evil.test:443', 400, 'host_malformed'],
  ['H15 a Latin-1 letter in CONNECT', 'api.acm\u00e9.test:443', 400, 'request_target'],
  ['H15 an ideographic full stop in CONNECT', utf8('api。acme.test:443'), 400, 'request_target'],
  ['H15 a ligature in CONNECT', utf8('api.acme.te\ufb06:443'), 400, 'request_target'],
  ['H16 a homograph in A-labels', 'xn--ap-ipa.acme.test:443', 403, 'default_denied'],
  ['H17 an empty A-label', 'xn--.acme.test:443', 400, 'host_label'],
  ['H17 an A-label that is no punycode', 'xn--99999-0.acme.test:443', 400, 'host_punycode'],
  ['H17 an A-label that decodes to plain ASCII', 'xn--api-.acme.test:443', 400, 'host_label'],
  ['H17 a label of 64 characters', `${'a'.repeat(64)}.acme.test:443`, 400, 'host_label'],
  ['H17 a name of 254 characters', `${'a.'.repeat(122)}acme.test.x:443`, 400, 'host_too_long'],
  ['H17 an empty label', 'api..acme.test:443', 400, 'host_label'],
  ['H17 a leading dot', '.api.acme.test:443', 400, 'host_label'],
  ['H17 two trailing dots', 'api.acme.test..:443', 400, 'host_label'],
  ['H18 a name that only ends like the wildcard', 'evilwild.acme.test:443', 403, 'default_denied'],
  ['H18 the wildcard as a prefix of another domain', 'sub.wild.acme.test.evil.test:443', 403, 'default_denied'],
  ['H18 the wildcard without a label in front', 'wild.acme.test:443', 403, 'default_denied'],
  ['H13 a denied name with a trailing dot', 'wild.acme.test.:443', 403, 'default_denied'],
  ['H19 a zone id that ends like an allowed name', '[::1%x.wild.acme.test]:443', 400, 'host_zone'],
  ['H19 an encoded zone id', '[::1%25x.wild.acme.test]:443', 400, 'host_zone'],
];

for (const [title, authority, status, code] of connects) {
  test.serial(`${title} is refused with ${status} ${code}`, async (t) => {
    const here = stage();
    here.clear();
    const connection = await here.open(t, proxy);
    connection.write(here.expand(`CONNECT ${authority} HTTP/1.1\r\nHost: ${hostFor(authority)}\r\n${auth}\r\n`));
    await expectRefused(t, here, await connection.readResponse('GET'), { status, code });
  });
}

/** The same as the target where that can stand in a header; else a good one, so that only the target is judged. */
function hostFor(authority: string): string {
  return /^[a-z0-9.:-]+$/i.test(authority) ? authority : 'api.acme.test:443';
}

function utf8(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}
