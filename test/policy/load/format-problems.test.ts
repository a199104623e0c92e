import test from 'ava';
import fc from 'fast-check';
import { formatProblems } from '../../../policy/index.ts';

const base = { code: 'POLICY_TYPE', severity: 'error', message: 'wrong', file: 'p.yaml', line: 3, column: 7 } as const;

test('formatProblems() writes place, code, excerpt and hint', (t) => {
  t.is(
    formatProblems([
      { ...base, excerpt: 'hots', hint: 'Did you mean `hosts`?' },
      { ...base, severity: 'warning' },
    ]),
    [
      'p.yaml:3:7: error POLICY_TYPE: wrong',
      '  | hots',
      '  = Did you mean `hosts`?',
      'p.yaml:3:7: warning POLICY_TYPE: wrong',
    ].join('\n'),
  );
});

test('formatProblems() lets no text of a document move the cursor or start a line', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const shown = formatProblems([{ ...base, message: text, file: text, excerpt: text, hint: text }]);
      t.true(shown.split('\n').length === 3 && !/(?!\n)\p{Cc}|\u202e|\u2028/u.test(shown));
    }),
  );
});
