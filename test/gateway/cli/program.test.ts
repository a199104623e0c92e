import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import test from 'ava';
import type { Command } from 'commander';
import { Cli } from '../../../gateway/cli/cli.ts';
import { commandModels } from '../../../gateway/cli/completion/command-model.ts';
import { createProgram } from '../../../gateway/cli/program.ts';
import { command as commandAvailable, testNeeding } from '../../kit/require-system.ts';
import { command, temporaryFolder } from './command-line.ts';

const quiet = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough(), env: {} };
const commands = flatten(createProgram(new Cli(quiet)), '');

/** What the product's names promise for this version. */
const promised = [
  'up',
  'gateway',
  'run',
  'policy check',
  'policy test',
  'policy explain',
  'policy schema',
  'vault init',
  'vault set',
  'vault list',
  'vault show',
  'vault remove',
  'audit tail',
  'audit verify',
  'audit schema',
  'ca show',
  'ca export',
  'doctor',
  'selftest',
  'reload',
  'status',
  'completion',
];

test('the program has every command it promises and no other', (t) => {
  const leaves = commands.filter(({ found }) => found.commands.length === 0).map(({ name }) => name);
  t.deepEqual(leaves.sort(), [...promised].sort());
});

/** These have no result: they stay, pass on somebody else's output, or print a script. */
const withoutJson = new Set(['gateway', 'run', 'completion']);

for (const { name, found } of commands) {
  test(`the help of sallyport ${name} has a description and an example`, async (t) => {
    const outcome = await command([...name.split(' ').filter((word) => word !== ''), '--help']);
    t.is(outcome.code, 0);
    t.regex(outcome.stdout, /\nExamples:\n {2}\$ /);
    t.not(found.description(), '');
    const isLeaf = found.commands.length === 0;
    if (isLeaf) t.is(outcome.stdout.includes('--json'), !withoutJson.has(name));
  });
}

for (const shell of ['bash', 'zsh', 'fish']) {
  test(`completion ${shell} names every command and every long option`, async (t) => {
    const { stdout, code } = await command(['completion', shell]);
    t.is(code, 0);
    for (const model of commandModels(createProgram(new Cli(quiet)))) {
      for (const word of model.subcommands) t.true(stdout.includes(word.text), word.text);
      for (const option of model.options) {
        for (const name of option.names.filter((text) => text.startsWith('--'))) {
          t.true(stdout.includes(shell === 'fish' ? `-l ${name.slice(2)}` : name), name);
        }
      }
    }
  });
}

for (const [shell, flag] of [
  ['bash', '-n'],
  ['zsh', '-n'],
  ['fish', '--no-execute'],
] as const) {
  testNeeding(commandAvailable(shell))(`completion ${shell} is a script that ${shell} can read`, async (t) => {
    const { stdout } = await command(['completion', shell]);
    const file = join(temporaryFolder(t), 'completion');
    writeFileSync(file, stdout);
    const checked = spawnSync(shell, [flag, file], { encoding: 'utf8' });
    t.is(checked.status, 0, checked.stderr);
  });
}

/** Words typed, the last one being completed; some words that must be offered, some that must not. */
const completions: [string, string[], string[], string[]][] = [
  ['the commands', [''], ['up', 'policy', 'vault', '--help'], ['check']],
  ['a beginning', ['po'], ['policy'], ['up']],
  ['the commands of a group', ['policy', ''], ['check', 'test', 'explain', 'schema'], ['up']],
  ['the options of a command', ['vault', 'set', '--'], ['--home', '--config', '--json'], ['--follow']],
  ['the words of an option', ['audit', 'tail', '--verdict', ''], ['allow', 'deny'], ['--json']],
  ['the words of an argument', ['completion', ''], ['bash', 'zsh', 'fish'], ['up']],
  ['files for files', ['policy', 'check', '/etc/host'], ['/etc/hostname'], ['check']],
  ['nothing for free text', ['run', '--label', ''], [], ['--quiet', 'up']],
  ['no option of ours after --', ['run', '--', '--qu'], [], ['--quiet']],
];
for (const [name, words, offered, withheld] of completions) {
  testNeeding(commandAvailable('bash'))(`completion bash offers ${name}`, async (t) => {
    const { stdout } = await command(['completion', 'bash']);
    const line = ['sallyport', ...words].map((word) => `'${word}'`).join(' ');
    const ask = `COMP_WORDS=(${line}); COMP_CWORD=${words.length}; _sallyport; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const answer = spawnSync('bash', ['--norc', '--noprofile'], { input: `${stdout}\n${ask}\n`, encoding: 'utf8' });
    const got = answer.stdout.split('\n');
    for (const word of offered) t.true(got.includes(word), `${word} in ${got.join(' ')}`);
    for (const word of withheld) t.false(got.includes(word), `${word} in ${got.join(' ')}`);
  });
}

function flatten(found: Command, name: string): { name: string; found: Command }[] {
  const below = found.commands.flatMap((child) => flatten(child, `${name} ${child.name()}`.trim()));
  return [{ name, found }, ...below];
}
