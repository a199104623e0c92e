import test from 'ava';
import fc from 'fast-check';
import { expandMethods } from '../../../policy/load/expand-methods.ts';

const good: readonly (readonly [written: readonly string[], methods: readonly string[]])[] = [
  [['GET'], ['GET']],
  [['read'], ['GET', 'HEAD']],
  [['write'], ['POST', 'PUT', 'PATCH', 'DELETE']],
  [
    ['read', 'GET', 'POST'],
    ['GET', 'HEAD', 'POST'],
  ],
  [['any'], []],
  [['*'], ['*']],
  [['M-SEARCH'], ['M-SEARCH']],
];

for (const [written, methods] of good) {
  test(`expandMethods() makes [${methods}] of [${written}]`, (t) => {
    t.deepEqual(expandMethods(written), { ok: true, methods });
  });
}

const bad: readonly (readonly [written: readonly string[], index: number])[] = [
  [['get'], 0],
  [['GET', 'Post'], 1],
  [['READ'], 0],
  [['any', 'GET'], 0],
  [['GET', '*'], 1],
  [['CONNECT'], 0],
  [['GET', 'TRACE'], 1],
  [['G T'], 0],
  [[''], 0],
  [['A'.repeat(33)], 0],
  [['constructor'], 0],
  [['__proto__'], 0],
];

for (const [written, index] of bad) {
  test(`expandMethods() refuses [${written}]`, (t) => {
    const result = expandMethods(written);
    t.like(result, { ok: false, index });
  });
}

test('expandMethods() of its own result is that result', (t) => {
  const method = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'read', 'write', 'any', '*', 'get', 'X');
  fc.assert(
    fc.property(fc.array(method), (written) => {
      const once = expandMethods(written);
      if (once.ok) t.deepEqual(expandMethods(once.methods), once);
    }),
  );
});
