/** Properties every parser of `policy/` keeps, whatever it is given. */

import test from 'ava';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import {
  type Canonical,
  canonicalAuthority,
  canonicalHost,
  canonicalRequest,
  canonicalTarget,
  canonicalUrl,
  classifyAddress,
  type Destination,
  decide,
  explainRequest,
  formatAddress,
  formatCidr,
  formatHostPattern,
  isNeverName,
  matchPath,
  parseAddress,
  parseCidr,
  parseHostPattern,
  parsePathPattern,
  parseQueryGlob,
  policyHost,
} from '../../policy/index.ts';
import { policyOf, rule } from './documents.ts';

const runs = { numRuns: 400 };

/** Text made of the pieces attacks are made of, mixed with anything at all. */
const nasty = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '/',
        '//',
        '.',
        '..',
        '%2e',
        '%2F',
        '%252e',
        ';',
        '%3b',
        '\\',
        '%5c',
        '?',
        '#',
        '@',
        ':',
        '*',
        '**',
      ),
      fc.constantFrom(
        '[',
        ']',
        '%',
        '%c0%ae',
        '%00',
        'xn--',
        '-',
        '_',
        '0x',
        '127',
        '::',
        'ffff',
        '。',
        'é',
        'İ',
        'a',
        'B',
      ),
      fc.string({ unit: 'binary', maxLength: 6 }),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''));

/** The other reader takes ::1.2.3.4 for ::ffff:1.2.3.4, so dotted forms are left to the vectors. */
const ipv6Groups = fc.ipV6().filter((text) => !text.includes('.'));

const parsers: Readonly<Record<string, (text: string) => Canonical<unknown>>> = {
  canonicalHost,
  policyHost,
  canonicalTarget: (text) => canonicalTarget(`/${text}`),
  canonicalUrl,
  parseHostPattern,
  parsePathPattern: (text) => parsePathPattern(`/${text}`),
  parseQueryGlob,
  parseAddress,
  parseCidr,
  canonicalAuthority: (text) => canonicalAuthority(text, 443),
  'canonicalRequest() of a method, then of a URL with explainRequest': (text) => {
    const method = canonicalRequest(text, 'https://a.test/');
    return method.ok ? explainRequest(policyOf([]), 'GET', `https://${text}`) : method;
  },
};

for (const [name, parse] of Object.entries(parsers)) {
  test(`${name}() returns a value or a failure with code and reason for any text`, (t) => {
    fc.assert(
      fc.property(nasty, (text) => {
        const result = parse(text);
        return result.ok || (/^[a-z_0-9]+$/.test(result.code) && result.reason !== '' && result.status >= 400);
      }),
      runs,
    );
    t.pass();
  });
}

test('canonicalHost() gives the same destination for its own answer', (t) => {
  holds(canonicalHost, ({ kind, ...rest }: Destination) => Object.values(rest)[0] ?? kind, nasty);
  t.pass();
});

test('canonicalTarget() gives the same target for what is sent', (t) => {
  holds(
    canonicalTarget,
    sent,
    nasty.map((text) => `/${text}`),
  );
  t.pass();
});

test('canonicalTarget() never sends a dot segment, a doubled slash or a byte outside printable ASCII', (t) => {
  fc.assert(
    fc.property(nasty, (text) => {
      const target = canonicalTarget(`/${text}`);
      if (!target.ok) return true;
      const { path } = target.value;
      return /^\/[!-~]*$/.test(path) && !/\/\/|\/\.{1,2}(?:[/;]|$)/.test(path);
    }),
    runs,
  );
  t.pass();
});

test('parseHostPattern() and parsePathPattern() read their own canonical text', (t) => {
  holds(parseHostPattern, formatHostPattern, nasty);
  holds(
    parsePathPattern,
    ({ text }) => text,
    nasty.map((text) => `/${text}`),
  );
  t.pass();
});

test('parseCidr() reads its own canonical text', (t) => {
  const blocks = fc.tuple(fc.oneof(fc.ipV4(), fc.ipV6()), fc.nat(128)).map(([ip, prefix]) => `${ip}/${prefix}`);
  holds(parseCidr, formatCidr, blocks);
  t.pass();
});

test('parseAddress() agrees with another reader on what IPv6 text means', (t) => {
  fc.assert(
    fc.property(ipv6Groups, (text) => {
      const mine = parseAddress(text);
      const theirs = ipaddr.process(text);
      return mine.ok && ipaddr.process(formatAddress(mine.value)).toNormalizedString() === theirs.toNormalizedString();
    }),
    runs,
  );
  t.pass();
});

test('parseAddress() and canonicalHost() write IPv6 as RFC 5952 does', (t) => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(0, 0, 0, 1, 0xdb8, 0xffff), { minLength: 8, maxLength: 8 }), (groups) => {
      const text = groups.map((group) => group.toString(16)).join(':');
      const mine = parseAddress(text);
      if (!mine.ok || mine.value.family === 4) return mine.ok;
      return formatAddress(mine.value) === ipaddr.IPv6.parse(text).toRFC5952String();
    }),
    runs,
  );
  t.pass();
});

test('classifyAddress() refuses every IPv6 form of an IPv4 address it refuses', (t) => {
  const hex = (n: number): string => n.toString(16);
  fc.assert(
    fc.property(
      fc.oneof(fc.constantFrom('169.254.169.254', '127.0.0.1', '10.0.0.1', '0.0.0.0', '100.64.0.1'), fc.ipV4()),
      (ip) => {
        const [a = 0, b = 0, c = 0, d = 0] = ip.split('.').map(Number);
        const high = a * 256 + b;
        const low = c * 256 + d;
        const forms = [
          `::ffff:${ip}`,
          `64:ff9b::${ip}`,
          `2002:${hex(high)}:${hex(low)}::1`,
          `2001:0:${hex(high)}:${hex(low)}::f7f7:f7f7`,
          `2001:0:808:808::${hex(high ^ 0xffff)}:${hex(low ^ 0xffff)}`,
          `2606:4700::5efe:${ip}`,
        ];
        const plain = classifyAddress(ip);
        return forms.every((form) => classifyAddress(form) === plain);
      },
    ),
    runs,
  );
  t.pass();
});

test('isNeverName() does not change with case, a root dot or labels in front', (t) => {
  fc.assert(
    fc.property(
      fc.constantFrom('localhost', 'metadata.google.internal', 'example.com'),
      fc.constantFrom('', 'x.'),
      (name, front) => {
        const wanted = name !== 'example.com';
        return [name, name.toUpperCase(), `${name}.`].every((form) => isNeverName(front + form) === wanted);
      },
    ),
  );
  t.pass();
});

test('matchPath() agrees with a slow reading of the same glob', (t) => {
  const piece = fc.constantFrom('a', 'b', '*', 'a*', '*b', 'a*b', '**');
  const pathPiece = fc.constantFrom('a', 'b', 'ab', 'aab', '');
  fc.assert(
    fc.property(
      fc.array(piece, { minLength: 1, maxLength: 5 }),
      fc.array(pathPiece, { maxLength: 6 }),
      (glob, parts) => {
        const pattern = parsePathPattern(`/${glob.join('/')}`);
        const path = canonicalTarget(`/${parts.join('/')}`);
        if (!pattern.ok || !path.ok) return true;
        return matchPath(pattern.value, path.value.path) === slowMatch(glob, path.value.path.slice(1).split('/'));
      },
    ),
    { numRuns: 2000 },
  );
  t.pass();
});

test('decide() never throws, whatever facts it is given', (t) => {
  const policy = policyOf([
    rule({ name: 'a', hosts: ['a.com', '*.b.com'], paths: ['/x/**'], query: { q: '*' } }),
    rule({ name: 'd', effect: 'deny', hosts: ['**'], paths: ['/**/é*'], methods: ['DELETE'] }),
  ]);
  fc.assert(
    fc.property(nasty, nasty, nasty, fc.option(nasty), fc.boolean(), (host, method, path, query, flag) => {
      const facts = {
        scheme: 'https' as const,
        destination: { kind: 'name' as const, name: flag ? `${host}.b.com` : host },
        port: 443,
        method,
        target: { path: `/${path}`, query, encodedSlash: flag, encodedPercent: flag },
      };
      return ['allow', 'deny'].includes(decide(policy, facts).verdict);
    }),
    runs,
  );
  // The casts hold back nothing on purpose: a caller in plain JavaScript could do the same.
  t.is(decide(policy, null as never).code, 'rule_failed');
  t.is(decide(policy, {} as never).code, 'rule_failed');
});

function holds<T>(
  parse: (text: string) => Canonical<T>,
  print: (value: T) => string,
  texts: fc.Arbitrary<string>,
): void {
  fc.assert(
    fc.property(texts, (text) => {
      const once = parse(text);
      if (!once.ok) return true;
      const twice = parse(print(once.value));
      return twice.ok && JSON.stringify(twice.value) === JSON.stringify(once.value);
    }),
    { numRuns: 1500 },
  );
}

function sent({ path, query }: { readonly path: string; readonly query: string | null }): string {
  return query === null ? path : `${path}?${query}`;
}

function slowMatch(glob: readonly string[], parts: readonly string[]): boolean {
  const [head, ...rest] = glob;
  if (head === undefined) return parts.length === 0;
  if (head === '**') return parts.some((_, n) => slowMatch(rest, parts.slice(n))) || slowMatch(rest, []);
  const [part, ...others] = parts;
  if (part === undefined) return false;
  const isMatch = head === '*' ? part !== '' : new RegExp(`^${head.replace('*', '.*')}$`).test(part);
  return isMatch && slowMatch(rest, others);
}
