import test from 'ava';
import { capability, command, root, skipOrFail, testNeeding } from './require-system.ts';

test('command() reports nothing missing when the program is on PATH', (t) => {
  t.is(command('sh').missing, null);
});

test('command() names the program and its Debian package when it is not on PATH', (t) => {
  const missing = command('no-such-program-here', 'some-package').missing;
  t.is(missing, 'no-such-program-here is not installed (Debian: some-package)');
});

test('root() agrees with the effective user', (t) => {
  t.is(root().missing === null, process.geteuid?.() === 0);
});

test('skipOrFail() lets the test go on when the capability is there', (t) => {
  t.true(skipOrFail(t, capability('x', null)));
});

testNeeding(command('sh'))('testNeeding() runs the test when everything is there', (t) => {
  t.pass();
});
