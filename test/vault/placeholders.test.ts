import test from 'ava';
import fc from 'fast-check';
import { createPlaceholders, PLACEHOLDER_LENGTH, PLACEHOLDER_PATTERN } from '../../vault/index.ts';
import { codeOf } from './fixture.ts';

const key = Buffer.alloc(32, 1);

test('issue() gives the same placeholder for the life of a key', (t) => {
  const own = Buffer.from(key);
  const placeholders = createPlaceholders(own);
  const first = placeholders.issue('sandbox-1', 'github');
  own.fill(0);
  t.is(placeholders.issue('sandbox-1', 'github'), first);
  t.is(createPlaceholders(key).issue('sandbox-1', 'github'), first);
  t.not(createPlaceholders(Buffer.alloc(32, 2)).issue('sandbox-1', 'github'), first);
  t.is(first, 'sptph_8ddc2548e7bd9fa676529a6f6ea5a0bddcf62811');
});

test('issue() gives each sandbox and credential a placeholder of its own, all of one shape', (t) => {
  const placeholders = createPlaceholders(key);
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.tuple(fc.string(), fc.string()), { selector: (pair) => JSON.stringify(pair) }),
      (pairs) => {
        const issued = pairs.map(([sandbox, credential]) => placeholders.issue(sandbox, credential));
        const isShaped = issued.every((text) => text.length === PLACEHOLDER_LENGTH && PLACEHOLDER_PATTERN.test(text));
        return isShaped && new Set(issued).size === pairs.length;
      },
    ),
  );
  t.not(placeholders.issue('a', 'bc'), placeholders.issue('ab', 'c'));
});

test('createPlaceholders() refuses a short key', async (t) => {
  t.is(await codeOf(() => createPlaceholders(Buffer.alloc(31))), 'VAULT_KEY_MALFORMED');
});
