/** BAD-INPUT group P: targets that look like one path and mean another. */
import anyTest, { type TestFn } from 'ava';
import { header } from '../../kit/http-message.ts';
import { respond } from '../../kit/replies.ts';
import {
  type AllowedCase,
  expectRefused,
  proxy,
  proxyRequest,
  type RefusedCase,
  request,
  testAllowed,
  testRefused,
  tunnel,
  useStage,
} from './stage.ts';

const test = anyTest as TestFn;

const policy = `
version: 1
name: paths
rules:
  - name: public
    effect: allow
    hosts: [api.acme.test]
    methods: [GET]
    paths: ["/pub/**", "/v1/*", "/repos/acme/**", "/search"]
    query: {}
  - name: no-secret
    effect: deny
    hosts: [api.acme.test]
    paths: ["/repos/acme/secret/**"]
    reason: Not this repository.
  - name: packages
    effect: allow
    hosts: [npm.acme.test]
    methods: [GET]
    paths: ["/@scope/*", "/@scope%2F*"]
    encodedSlash: true
  - name: search
    effect: allow
    hosts: [query.acme.test]
    methods: [GET]
    paths: ["/q"]
    query: { kind: "good*" }
  - name: anything
    effect: allow
    hosts: [any.acme.test]
    methods: ["*"]
  - name: usual
    effect: allow
    hosts: [other.acme.test]
    paths: ["/usual/**"]
  - name: plain
    effect: allow
    scheme: http
    hosts: [plain.acme.test]
    methods: [GET]
    paths: ["/pub/**"]
`.replace('    query: {}\n', '');

const stage = useStage(test, () => ({
  policy,
  tls: { 'api.acme.test': {}, 'npm.acme.test': {}, 'query.acme.test': {}, 'any.acme.test': {}, 'other.acme.test': {} },
  plain: { 'plain.acme.test': {} },
}));

const get = (host: string, target: string): Pick<RefusedCase, 'via' | 'send'> => ({
  via: tunnel(`${host}:443`),
  send: request(`GET ${target} HTTP/1.1`, `Host: ${host}`),
});

/** title, host, target sent, target that must arrive. */
const allowed: readonly [title: string, host: string, target: string, wire: string][] = [
  ['P1 /./', 'api.acme.test', '/./pub/x', '/pub/x'],
  ['P1 /a/..', 'api.acme.test', '/admin/../pub/x', '/pub/x'],
  ['P2 an encoded dot segment', 'api.acme.test', '/admin/%2e%2E/pub/x', '/pub/x'],
  ['P5 a doubled slash', 'api.acme.test', '//pub//x', '/pub/x'],
  ['P7 a path parameter', 'api.acme.test', '/pub/x;v=1', '/pub/x;v=1'],
  ['P8 an encoded letter', 'api.acme.test', '/%70ub/%78', '/pub/x'],
  ['P8 lower-case hex', 'api.acme.test', '/pub/%c3%a9', '/pub/%C3%A9'],
  ['P10 a scoped package', 'npm.acme.test', '/@scope%2fname', '/@scope%2Fname'],
  ['P11 one segment below', 'api.acme.test', '/v1/x', '/v1/x'],
  ['P12 a dotfile', 'api.acme.test', '/repos/acme/.github/x', '/repos/acme/.github/x'],
  ['P15 a repeated key with good values', 'query.acme.test', '/q?kind=good&kind=goods', '/q?kind=good&kind=goods'],
  ['P15 plus and %20', 'query.acme.test', '/q?kind=good+one&x=%20', '/q?kind=good+one&x=%20'],
  ['P17 the exact spelling of an allowed path', 'api.acme.test', '/repos/acme/public', '/repos/acme/public'],
];
testAllowed(
  test,
  stage,
  allowed.map(
    ([title, host, target, wire]): AllowedCase => ({
      title,
      ...get(host, target),
      upstream: host,
      line: `GET ${wire} HTTP/1.1`,
    }),
  ),
);

/** title, host, target sent, status, code, canonical path in the record. */
const refused: readonly [title: string, host: string, target: string, status: number, code: string, path?: string][] = [
  ['P1 /pub/../admin', 'api.acme.test', '/pub/../admin', 403, 'default_denied', '/admin'],
  ['P1 a path above the root', 'api.acme.test', '/../pub/x', 400, 'target_above_root'],
  ['P1 a path above the root later on', 'api.acme.test', '/pub/../../pub/x', 400, 'target_above_root'],
  ['P2 %2e%2e', 'api.acme.test', '/pub/%2e%2e/admin', 403, 'default_denied', '/admin'],
  ['P2 .%2E', 'api.acme.test', '/pub/.%2E/admin', 403, 'default_denied', '/admin'],
  ['P3 ..%2f', 'api.acme.test', '/pub/..%2fadmin', 400, 'target_encoded_dots'],
  ['P3 %2f where no rule takes it', 'api.acme.test', '/pub/a%2fb', 400, 'encoded_slash'],
  [
    'P3 %2f whose decoded form leaves the rule',
    'npm.acme.test',
    '/@other%2fname',
    403,
    'default_denied',
    '/@other%2Fname',
  ],
  ['P3 ..%2f where a rule takes %2f', 'npm.acme.test', '/@scope%2f..%2f..%2fadmin', 400, 'target_encoded_dots'],
  ['P4 %252e%252e%252f', 'api.acme.test', '/pub/%252e%252e%252fadmin', 400, 'double_encoding'],
  ['P5 //admin', 'api.acme.test', '//admin', 403, 'default_denied', '/admin'],
  ['P6 a backslash', 'api.acme.test', '/pub\\..\\admin', 400, 'target_backslash'],
  ['P6 %5c', 'api.acme.test', '/pub/..%5cadmin', 400, 'target_backslash'],
  ['P7 /..;/', 'api.acme.test', '/pub/..;/admin', 400, 'target_parameters'],
  ['P7 /;/', 'api.acme.test', '/pub/;x/admin', 400, 'target_parameters'],
  ['P7 an encoded semicolon behind dots', 'api.acme.test', '/pub/..%3b/admin', 400, 'target_parameters'],
  ['P8 /%61dmin', 'api.acme.test', '/%61dmin', 403, 'default_denied', '/admin'],
  [
    'P8 an encoded letter of a denied path',
    'api.acme.test',
    '/repos/acme/%73ecret/x',
    403,
    'policy_denied',
    '/repos/acme/secret/x',
  ],
  ['P9 %00', 'api.acme.test', '/pub/x%00', 400, 'target_control'],
  ['P9 %0d%0a', 'api.acme.test', '/pub/x%0d%0aHost:%20evil', 400, 'target_control'],
  ['P9 overlong UTF-8', 'api.acme.test', '/pub/%c0%ae%c0%ae/admin', 400, 'target_utf8'],
  ['P9 %zz', 'api.acme.test', '/pub/%zz', 400, 'target_percent'],
  ['P9 a percent sign at the end', 'api.acme.test', '/pub/%', 400, 'target_percent'],
  ['P11 /v1beta against /v1/*', 'api.acme.test', '/v1beta', 403, 'default_denied', '/v1beta'],
  ['P11 /v1/a/b against /v1/*', 'api.acme.test', '/v1/a/b', 403, 'default_denied', '/v1/a/b'],
  ['P11 a path that only starts like an allowed one', 'api.acme.test', '/repos/acme-evil/x', 403, 'default_denied'],
  ['P14 a fragment', 'api.acme.test', '/pub/x#/../admin', 400, 'target_fragment'],
  ['P14 a target of 20 KiB', 'api.acme.test', `/pub/${'a'.repeat(20 * 1024)}`, 414, 'target_too_long'],
  ['P14 a target of 64 KiB', 'api.acme.test', `/pub/${'a'.repeat(64 * 1024)}`, 414, 'target_too_long'],
  ['P15 one good and one bad value', 'query.acme.test', '/q?kind=good&kind=bad', 403, 'default_denied'],
  ['P15 a bad value first', 'query.acme.test', '/q?kind=bad&kind=good', 403, 'default_denied'],
  ['P15 the key left out', 'query.acme.test', '/q', 403, 'default_denied'],
  ['P15 an encoded key that means the same', 'query.acme.test', '/q?kind=good&%6bind=bad', 403, 'default_denied'],
  ['P17 another case of a denied path', 'api.acme.test', '/repos/acme/SECRET/x', 403, 'policy_denied'],
  ['P17 another case of an allowed path', 'api.acme.test', '/Repos/ACME/public', 403, 'default_denied'],
  ['P12 a name with a dot that is another directory', 'api.acme.test', '/repos/.acme/x', 403, 'default_denied'],
];
testRefused(
  test,
  stage,
  refused.map(
    ([title, host, target, status, code, path]): RefusedCase => ({
      title,
      ...get(host, target),
      status,
      code,
      ...(path === undefined ? {} : { request: { path, host } }),
    }),
  ),
);

const others: readonly RefusedCase[] = [
  {
    title: 'P9 a raw control byte',
    ...get('api.acme.test', '/pub/\x01x'),
    status: 400,
    code: 'request_target',
    raw: '\x01',
  },
  { title: 'P9 a raw NUL', ...get('api.acme.test', '/pub/\0x'), status: 400, code: 'request_target' },
  { title: 'P9 a raw non-ASCII byte', ...get('api.acme.test', '/pub/\u00e9'), status: 400, code: 'request_target' },
  {
    title: 'P14 OPTIONS *',
    via: tunnel('any.acme.test:443'),
    send: request('OPTIONS * HTTP/1.1', 'Host: any.acme.test'),
    status: 403,
    code: 'options_asterisk',
  },
  {
    title: 'P14 OPTIONS on a GET rule',
    via: tunnel('api.acme.test:443'),
    send: request('OPTIONS /pub/x HTTP/1.1', 'Host: api.acme.test'),
    status: 403,
    code: 'default_denied',
  },
  {
    title: 'P16 a lower-case method',
    via: tunnel('api.acme.test:443'),
    send: request('get /pub/x HTTP/1.1', 'Host: api.acme.test'),
    status: 403,
    code: 'default_denied',
  },
  {
    title: 'P16 an unknown method on a GET rule',
    via: tunnel('api.acme.test:443'),
    send: request('GETX /pub/x HTTP/1.1', 'Host: api.acme.test'),
    status: 403,
    code: 'default_denied',
  },
  {
    title: 'P16 an unknown method on a rule without methods',
    via: tunnel('other.acme.test:443'),
    send: request('BREW /usual/x HTTP/1.1', 'Host: other.acme.test'),
    status: 403,
    code: 'default_denied',
  },
  {
    title: 'P16 TRACE on a rule without methods',
    via: tunnel('other.acme.test:443'),
    send: request('TRACE /usual/x HTTP/1.1', 'Host: other.acme.test'),
    status: 403,
    code: 'default_denied',
  },
  {
    title: 'P1 /pub/../admin through the plain proxy',
    via: proxy,
    send: proxyRequest('GET http://plain.acme.test/pub/../admin HTTP/1.1', 'Host: plain.acme.test'),
    status: 403,
    code: 'default_denied',
  },
  {
    title: 'P1 an absolute target that climbs over its authority',
    via: proxy,
    send: proxyRequest('GET http://plain.acme.test/../pub/x HTTP/1.1', 'Host: plain.acme.test'),
    status: 400,
    code: 'target_above_root',
  },
];
testRefused(test, stage, others);

testAllowed(test, stage, [
  {
    title: 'P16 an unknown method where any is allowed',
    via: tunnel('any.acme.test:443'),
    send: request('BREW /pot HTTP/1.1', 'Host: any.acme.test', 'Content-Length: 0'),
    upstream: 'any.acme.test',
    line: 'BREW /pot HTTP/1.1',
  },
  {
    title: 'P16 override headers, which are dropped,',
    via: tunnel('any.acme.test:443'),
    send: request(
      'GET /x HTTP/1.1',
      'Host: any.acme.test',
      'X-HTTP-Method-Override: DELETE',
      'X-HTTP-Method: DELETE',
      'X-Method-Override: DELETE',
      'X-Original-URL: /admin',
      'X-Rewrite-URL: /admin',
      'X_Http_Method_Override: DELETE',
      'X-Kept: 1',
    ),
    upstream: 'any.acme.test',
    line: 'GET /x HTTP/1.1',
    headers: {
      'x-http-method-override': null,
      'x-http-method': null,
      'x-method-override': null,
      'x-original-url': null,
      'x-rewrite-url': null,
      x_http_method_override: null,
      'x-kept': '1',
    },
  },
  {
    title: 'P1 a dot segment through the plain proxy',
    via: proxy,
    send: proxyRequest('GET http://plain.acme.test/x/../pub/./y?z=1 HTTP/1.1', 'Host: plain.acme.test'),
    upstream: 'plain.acme.test',
    line: 'GET /pub/y?z=1 HTTP/1.1',
  },
]);

test.serial(
  'P18 a Location to another host is passed on, and the request that follows it is judged on its own',
  async (t) => {
    const here = stage();
    here.clear();
    const location = 'https://other.acme.test/evil.tgz';
    here.upstream('api.acme.test').route('/pub/moved', respond({ status: 302, headers: { location } }));
    const first = await here.open(t, tunnel('api.acme.test:443'));
    const moved = await first.ask(request('GET /pub/moved HTTP/1.1', 'Host: api.acme.test'));
    t.deepEqual([moved.status, header(moved.headers, 'location')], [302, location]);
    here.clear();
    const second = await here.open(t, tunnel('other.acme.test:443'));
    const followed = await second.ask(request('GET /evil.tgz HTTP/1.1', 'Host: other.acme.test'));
    await expectRefused(t, here, followed, { status: 403, code: 'default_denied' });
  },
);
