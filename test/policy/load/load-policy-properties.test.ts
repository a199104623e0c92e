import test from 'ava';
import fc from 'fast-check';
import { parse } from 'yaml';
import { loadPolicy } from '../../../policy/index.ts';
import { filesBelow, repositoryText } from '../../kit/source-tree.ts';
import { fullPolicy as full } from './policy-texts.ts';

const load = (source: string | Uint8Array) => loadPolicy(source, { file: 'policy.yaml' });

const corpus: readonly string[] = filesBelow('test/testdata/policy', '.yaml').map(
  (file) => parse(repositoryText(file)).policy,
);

test('loadPolicy() never throws on text, bytes or objects', (t) => {
  const key = fc.constantFrom(
    'version',
    'name',
    'rules',
    'credentials',
    'tests',
    'hosts',
    'bind',
    'inject',
    'secret',
    'effect',
    'basic',
    'query',
    'x',
  );
  const value: fc.Memo<unknown> = fc.memo((depth) =>
    depth <= 1
      ? fc.oneof(
          fc.constantFrom(
            1,
            'allow',
            'deny',
            '**',
            '*.com',
            'vault:x',
            '@npm',
            'ask',
            null,
            true,
            'GET https://a/',
            '',
          ),
          fc.string(),
        )
      : fc.oneof(
          fc.dictionary(key, value(depth - 1), { maxKeys: 5 }),
          fc.array(value(depth - 1), { maxLength: 3 }),
          value(1),
        ),
  );
  const source = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.uint8Array(),
    value(5).map((object) => JSON.stringify(object)),
    fc.dictionary(key, value(4)).map((object) => JSON.stringify({ version: 1, name: 't', ...object })),
  );
  fc.assert(
    fc.property(source, (text) => {
      load(text);
    }),
    { numRuns: 700 },
  );
  t.pass();
});

test('loadPolicy() never throws on a policy with a slip in it', (t) => {
  const slip = fc.tuple(
    fc.constantFrom(full, ...corpus),
    fc.nat(),
    fc.nat({ max: 4 }),
    fc.oneof(
      fc.constantFrom('', ' ', '\n', '"', '*', '[', ']', '{', '}', ':', '-', '0', 'ask', '&a ', '*a', '!!x ', '\t'),
      fc.string({ maxLength: 3 }),
    ),
  );
  fc.assert(
    fc.property(slip, ([text, at, length, inserted]) => {
      const start = at % (text.length + 1);
      const loaded = load(text.slice(0, start) + inserted + text.slice(start + length));
      if (loaded.ok) return;
      for (const problem of loaded.problems)
        t.true([...(problem.excerpt ?? '')].length <= 80 && !/\p{Cc}/u.test(problem.excerpt ?? ''));
    }),
    { numRuns: 500 },
  );
  t.pass();
});
