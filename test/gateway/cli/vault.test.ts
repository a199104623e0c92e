import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import test from 'ava';
import { Cli } from '../../../gateway/cli/cli.ts';
import { askHidden, askTwice } from '../../../gateway/cli/prompt.ts';
import { command, type Outcome, started, temporaryFolder } from './command-line.ts';

const value = 'tr0ub4dor-correct-horse';

function leaks(outcome: Outcome): boolean {
  return outcome.stdout.includes(value) || outcome.stderr.includes(value);
}

test('vault init, set, list, show and remove work on one home', async (t) => {
  const home = join(temporaryFolder(t), 'home');
  const run = (args: string[], stdin?: string) =>
    command(['vault', ...args, '--home', home], stdin === undefined ? {} : { stdin });
  t.is((await run(['init'])).code, 0);
  t.is((await run(['init'])).code, 1);
  t.is(statSync(home).mode & 0o777, 0o700);
  for (const file of ['vault.key', 'vault.sealed']) t.is(statSync(join(home, file)).mode & 0o777, 0o600, file);
  t.is((await run(['list'])).stdout, 'no secrets\n');
  t.is((await run(['set', 'a/b'], `${value}\n`)).stdout, `a/b: version 1 stored, ${value.length} bytes\n`);
  t.is((await run(['set', 'a/b'], `${value}\r\n`)).stdout, `a/b: version 2 stored, ${value.length} bytes\n`);
  for (const args of [['list'], ['list', '--json'], ['show', 'a/b'], ['show', 'a/b', '--json']]) {
    const outcome = await run(args);
    t.is(outcome.code, 0, outcome.stderr);
    t.true(outcome.stdout.includes('a/b'));
    t.false(leaks(outcome));
  }
  t.is((await run(['remove', 'a/b'])).stdout, 'a/b: removed\n');
  t.is((await run(['show', 'a/b'])).code, 2);
  t.false(readdirSync(home).some((name) => readFileSync(join(home, name), 'latin1').includes(value)));
});

/** Ways to give a value on the command line; each is refused without repeating it. */
const onCommandLine: [string, string[]][] = [
  ['a second argument', ['a/b', value]],
  ['an unknown option', ['a/b', `--value=${value}`]],
  ['an unknown option with its own argument', ['a/b', '--value', value]],
  ['name=value', [`a=${value}`]],
  ['an unknown short option', ['a/b', `-${value}`]],
  ['after --', ['a/b', '--', value]],
];
for (const [name, args] of onCommandLine) {
  test(`vault set refuses ${name} and does not repeat it`, async (t) => {
    const home = join(temporaryFolder(t), 'home');
    await command(['vault', 'init', '--home', home]);
    const outcome = await command(['vault', 'set', '--home', home, ...args], { stdin: 'other' });
    t.is(outcome.code, 2);
    t.false(leaks(outcome), outcome.stderr);
    t.true(outcome.stderr.includes('command line'), outcome.stderr);
    t.is((await command(['vault', 'list', '--home', home])).stdout, 'no secrets\n');
  });
}

const badValues: [string, string, string][] = [
  ['an empty value', '', 'empty'],
  ['only a line end', '\n', 'empty'],
  ['two lines', 'a\nb\n', 'line break'],
  ['a NUL', 'a\0b', 'control character'],
  ['two line ends', 'a\n\n', 'line break'],
  ['too many bytes', 'x'.repeat(1024 * 1024), 'longer than'],
];
for (const [name, stdin, part] of badValues) {
  test(`vault set refuses ${name}`, async (t) => {
    const home = join(temporaryFolder(t), 'home');
    await command(['vault', 'init', '--home', home]);
    const outcome = await command(['vault', 'set', 'a', '--home', home], { stdin });
    t.is(outcome.code, 2, outcome.stdout);
    t.true(outcome.stderr.includes(part), outcome.stderr);
  });
}

test('the started program never shows the value, not in its output and not in its arguments', async (t) => {
  const home = join(temporaryFolder(t), 'home');
  t.is((await started(['vault', 'init'], { env: { SALLYPORT_HOME: home } })).code, 0);
  let seen = '';
  const outcome = await started(['vault', 'set', 'a'], {
    env: { SALLYPORT_HOME: home },
    stdin: value,
    onStart: (pid) => {
      seen = readFileSync(`/proc/${pid}/cmdline`, 'utf8') + readFileSync(`/proc/${pid}/environ`, 'latin1');
    },
  });
  t.is(outcome.code, 0, outcome.stderr);
  t.false(leaks(outcome));
  t.false(seen.includes(value));
});

test('a passphrase comes from the environment when the configuration says so', async (t) => {
  const home = join(temporaryFolder(t), 'home');
  mkdirSync(home, { mode: 0o700 });
  writeFileSync(join(home, 'sallyport.yaml'), 'vault: { passphrase: "env:PASS" }\n');
  const env = { PASS: 'a long passphrase' };
  t.is((await command(['vault', 'init', '--home', home], { env })).code, 0);
  t.is((await command(['vault', 'list', '--home', home], { env })).code, 0);
  const wrong = await command(['vault', 'list', '--home', home], { env: { PASS: 'another passphrase' } });
  t.true(wrong.stderr.includes('VAULT_KEY_WRONG'), wrong.stderr);
  const none = await command(['vault', 'list', '--home', home]);
  t.true(none.stderr.includes('the environment has no PASS'), none.stderr);
  t.false(readdirSync(home).includes('vault.key'));
});

/** A terminal that notes whether echo is off while it is typed on. */
class FakeTerminal extends PassThrough {
  readonly isTTY = true;
  readonly modes: boolean[] = [];

  setRawMode(isRaw: boolean): this {
    this.modes.push(isRaw);
    return this;
  }
}

function terminal(): { cli: Cli; stdin: FakeTerminal; shown: () => string } {
  const stdin = new FakeTerminal();
  const stderr = new PassThrough();
  return {
    cli: new Cli({ stdin, stdout: new PassThrough(), stderr, env: {} }),
    stdin,
    shown: () => String(stderr.read()),
  };
}

const typed: [string, string, string][] = [
  ['a line', 'hunter2\r', 'hunter2'],
  ['a line that ends with LF', 'hunter2\n', 'hunter2'],
  ['backspaces', 'huntr\u007fer2\b2\r', 'hunter2'],
  ['a backspace over a character of two bytes', 'aé\u007fb\r', 'ab'],
  ['more backspaces than characters', '\u007f\u007fx\r', 'x'],
];
for (const [name, keys, expected] of typed) {
  test(`askHidden() takes ${name} without echo`, async (t) => {
    const { cli, stdin, shown } = terminal();
    const answer = askHidden(cli, 'passphrase');
    stdin.write(keys);
    t.is((await answer).toString(), expected);
    t.deepEqual(stdin.modes, [true, false]);
    t.is(shown(), 'passphrase: \n');
  });
}

for (const [name, key] of [
  ['Ctrl-C', '\u0003'],
  ['Ctrl-D', '\u0004'],
] as const) {
  test(`askHidden() gives up at ${name} and leaves the terminal as it was`, async (t) => {
    const { cli, stdin } = terminal();
    const answer = askHidden(cli, 'passphrase');
    stdin.write(`abc${key}`);
    await t.throwsAsync(answer, { message: /given up/ });
    t.deepEqual(stdin.modes, [true, false]);
  });
}

test('askHidden() refuses a line longer than a terminal sends', async (t) => {
  const { cli, stdin } = terminal();
  const answer = askHidden(cli, 'passphrase');
  stdin.write('x'.repeat(5000));
  await t.throwsAsync(answer, { message: /too long/ });
});

test('askTwice() takes two equal lines and refuses two that differ', async (t) => {
  const same = terminal();
  const answer = askTwice(same.cli, 'passphrase');
  same.stdin.write('one\r');
  // The second question is asked only after the first answer.
  setImmediate(() => same.stdin.write('one\r'));
  t.is((await answer).toString(), 'one');
  const different = terminal();
  const refused = askTwice(different.cli, 'passphrase');
  different.stdin.write('one\r');
  setImmediate(() => different.stdin.write('two\r'));
  await t.throwsAsync(refused, { message: /differ/ });
});

test('a passphrase that is to be typed is refused where there is no terminal, and that is said', async (t) => {
  const home = temporaryFolder(t);
  writeFileSync(join(home, 'sallyport.yaml'), 'vault: { passphrase: prompt }\n');
  const outcome = await command(['vault', 'init', '--home', home]);
  t.is(outcome.code, 2);
  t.true(outcome.stderr.includes('there is no terminal'), outcome.stderr);
});
