import test from 'ava';
import fc from 'fast-check';
import {
  formatHostPattern,
  matchesHost,
  matchPath,
  parseHostPattern,
  parsePathPattern,
} from '../../../policy/index.ts';
import { hostCovers, hostsIntersect, pathCovers, pathsIntersect } from '../../../policy/load/globs.ts';

const covers: readonly (readonly [outer: string, inner: string, expected: boolean])[] = [
  ['/**', '/x', true],
  ['/x/**', '/x', true],
  ['/x/**', '/x/', true],
  ['/x/**', '/x/**', true],
  ['/x/**', '/x/*', true],
  ['/x/**', '/x/**/y', true],
  ['/x/**', '/xy', false],
  ['/x/*', '/x/y', true],
  ['/x/*', '/x/*', true],
  ['/x/*', '/x/y*', true],
  ['/x/*', '/x/', false],
  ['/x/*', '/x/**', false],
  ['/x/*', '/x/y/z', false],
  ['/x/a*', '/x/ab', true],
  ['/x/a*', '/x/*', false],
  ['/x/a*b', '/x/a*c*b', true],
  ['/x/**/z', '/x/y/z', true],
  ['/x/**/z', '/x/z', true],
  ['/x/**/z', '/x/*/*/z', true],
  ['/x/**/z', '/x/**', false],
  ['/x', '/X', false],
];

for (const [outer, inner, expected] of covers) {
  test(`pathCovers() says ${expected} for ${outer} over ${inner}`, (t) => {
    t.is(pathCovers(outer, inner), expected);
  });
}

const meets: readonly (readonly [one: string, other: string, expected: boolean])[] = [
  ['/x/*', '/*/y', true],
  ['/x/*', '/y/*', false],
  ['/x/**', '/**/y', true],
  ['/x/a*', '/x/*b', true],
  ['/x/a*', '/x/b*', false],
  ['/x/**/a', '/x/**/b', false],
  ['/x', '/x/**', true],
  ['/x/y', '/x/*/z', false],
];

for (const [one, other, expected] of meets) {
  test(`pathsIntersect() says ${expected} for ${one} and ${other}`, (t) => {
    t.is(pathsIntersect(one, other), expected);
    t.is(pathsIntersect(other, one), expected);
  });
}

test('hostCovers() and hostsIntersect() keep labels whole', (t) => {
  t.true(hostCovers('*.x.com', 'a.x.com'));
  t.true(hostCovers('*.x.com', '*.a.x.com'));
  t.true(hostCovers('*.x.com', '*.x.com'));
  t.false(hostCovers('*.x.com', 'x.com'));
  t.false(hostCovers('*.x.com', 'ax.com'));
  t.false(hostCovers('*.a.x.com', '*.x.com'));
  t.false(hostCovers('a.x.com', '*.x.com'));
  t.true(hostsIntersect('*.x.com', '*.a.x.com'));
  t.true(hostsIntersect('b.a.x.com', '*.x.com'));
  t.false(hostsIntersect('*.x.com', '*.xx.com'));
});

const segment = fc
  .string({ unit: fc.constantFrom('a', 'b', '*'), minLength: 1, maxLength: 3 })
  .filter((text) => !text.includes('**'));
const pathPattern = fc
  .tuple(fc.array(fc.oneof(segment, fc.constant('**')), { minLength: 1, maxLength: 4 }), fc.boolean())
  .map(([segments, isDirectory]) => `/${segments.join('/')}${isDirectory && segments.at(-1) !== '**' ? '/' : ''}`)
  .filter((text) => parsePathPattern(text).ok);
const path = fc
  .array(fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 3 }), { maxLength: 4 })
  .chain((segments) => fc.constantFrom(`/${segments.join('/')}`, `/${segments.join('/')}/`.replace('//', '/')));

function matches(pattern: string, text: string): boolean {
  const parsed = parsePathPattern(pattern);
  return parsed.ok && matchPath(parsed.value, text);
}

test('pathCovers() and pathsIntersect() agree with what patterns match', (t) => {
  fc.assert(
    fc.property(pathPattern, pathPattern, fc.array(path, { minLength: 1, maxLength: 20 }), (one, other, paths) => {
      for (const text of paths) {
        const isOne = matches(one, text);
        const isOther = matches(other, text);
        // A cover that is claimed holds; an intersection that exists is found.
        t.false(pathCovers(one, other) && isOther && !isOne, `${one} ${other} ${text}`);
        t.false(isOne && isOther && !pathsIntersect(one, other), `${one} ${other} ${text}`);
      }
    }),
    { numRuns: 3000 },
  );
});

test('hostCovers() and hostsIntersect() agree with what patterns match', (t) => {
  const name = fc
    .array(fc.constantFrom('a', 'b', 'ab'), { minLength: 1, maxLength: 4 })
    .map((labels) => labels.join('.'));
  const pattern = fc.tuple(name, fc.boolean()).map(([text, isWild]) => (isWild ? `*.${text}` : text));
  const isIn = (text: string, host: string) => {
    const parsed = parseHostPattern(text);
    return (
      parsed.ok && formatHostPattern(parsed.value) === text && matchesHost(parsed.value, { kind: 'name', name: host })
    );
  };
  fc.assert(
    fc.property(pattern, pattern, name, (one, other, host) => {
      t.false(hostCovers(one, other) && isIn(other, host) && !isIn(one, host), `${one} ${other} ${host}`);
      t.false(isIn(one, host) && isIn(other, host) && !hostsIntersect(one, other), `${one} ${other} ${host}`);
    }),
    { numRuns: 2000 },
  );
});
