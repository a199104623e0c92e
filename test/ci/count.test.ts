/** `.ci/count.js` decides whether a run counts as passed, so it is tested against what ava prints. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import test from 'ava';
import { repositoryRoot } from '../kit/source-tree.ts';

const cases: readonly (readonly [name: string, report: string, counts: string])[] = [
  ['all tests pass', '  ✔ a › one\n  ✔ b › two (1.2s)\n  ─\n\n  2 tests passed\n', '2 0 0'],
  ['one test passes', '\n  ✔ one\n  ─\n\n  1 test passed\n', '1 0 0'],
  ['one test fails', '  ✔ a › one\n  ✘ [fail]: a › two broken\n  ─\n\n  1 test failed\n', '1 1 0'],
  ['the report is coloured', '  \u001b[32m✔\u001b[39m one\n  \u001b[32m1 test passed\u001b[39m\n', '1 0 0'],
  ['tests are skipped', '  ✔ a › one\n  - [skip] a › two\n\n  1 test passed\n  1 test skipped\n', '1 0 1'],
  ['an exception is not caught', '  ✔ a › one\n\n  1 test passed\n  1 uncaught exception\n', '1 1 0'],
  ['rejections are not handled', '  ✔ a › one\n\n  1 test passed\n  2 unhandled rejections\n', '1 2 0'],
  ['a hook fails', '  ✘ [fail]: a › beforeEach hook for one x\n\n  1 hook failed\n', '0 1 0'],
  ['a timeout leaves tests', '  ✔ a › one\n\n  3 tests remained pending after a timeout\n', '1 3 0'],
  ['a file crashes', '  ✔ a › one\n  ✘ dist/test/b.test.js exited due to SIGKILL\n\n  1 test passed\n', '1 1 0'],
  ['a file has no tests', '  ✔ a › one\n  ✘ No tests found in dist/test/b.test.js\n\n  1 test passed\n', '1 1 0'],
  ['a file leaves early', '  ✔ a › one\n  ✘ 2 tests remaining in dist/test/b.test.js\n\n  1 test passed\n', '1 1 0'],
  [
    'a known failure fails',
    '  ✔ a › one\n  ✔ [expected fail] a › two\n\n  1 test passed\n  1 known failure\n',
    '1 0 0',
  ],
  ['a title speaks of failures', '  ✔ a › says 3 tests failed\n\n  1 test passed\n', '1 0 0'],
  ['there are no files', '  ✘ Couldn’t find any files to test\n', '0 1 0'],
  ['ava never started', 'npm error missing script\n', '0 0 0'],
];

for (const [name, report, counts] of cases) {
  test(`count.js counts right when ${name}`, (t) => {
    const done = spawnSync(process.execPath, [join(repositoryRoot, '.ci/count.js')], {
      input: report,
      encoding: 'utf8',
    });
    t.is(done.stderr, '');
    t.is(done.stdout, `${counts}\n`);
  });
}
