/**
 * The tree of commands. A command imports what is heavy (gateway, vault, HTTP) only when it runs: completion, help and
 * `policy check` in a hook should answer at once.
 */
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import type { Cli } from './cli.ts';
import { addAudit } from './commands/audit.ts';
import { addCa } from './commands/ca.ts';
import { addCompletion } from './commands/completion.ts';
import { addControlCommands } from './commands/control.ts';
import { addDoctor } from './commands/doctor.ts';
import { addGateway } from './commands/gateway.ts';
import { addPolicy } from './commands/policy.ts';
import { addRun } from './commands/run.ts';
import { addUp } from './commands/up.ts';
import { addVault } from './commands/vault.ts';
import { withExamples } from './configuration.ts';
import { plainText } from './plain-text.ts';

/** A fresh tree; commander keeps what it parsed, so a tree serves one invocation. */
export function createProgram(cli: Cli): Command {
  const program = new Command('sallyport')
    .description(
      'Egress gateway for AI-agent sandboxes: a policy file decides what leaves, credentials stay outside, every decision is recorded.',
    )
    .version(version(), '--version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand(false)
    .exitOverride()
    .showSuggestionAfterError()
    .configureOutput({ writeOut: (text) => cli.raw(text), writeErr: (text) => cli.note(plainLines(text)) });
  addUp(program, cli);
  addGateway(program, cli);
  addRun(program, cli);
  addPolicy(program, cli);
  addVault(program, cli);
  addAudit(program, cli);
  addCa(program, cli);
  addDoctor(program, cli);
  addControlCommands(program, cli);
  addCompletion(program, cli);
  return withExamples(
    program,
    'sallyport up                                # start everything, in the foreground',
    'sallyport run -- curl https://example.com/  # a command whose way out is the gateway',
    'sallyport policy check policies/*.yaml      # in a pull request',
  );
}

/** Commander quotes what was typed, and that may come from a script that somebody else feeds. */
function plainLines(text: string): string {
  return text
    .split('\n')
    .map((line) => plainText(line))
    .join('\n');
}

function version(): string {
  // The same place from gateway/cli/ in the sources and from dist/gateway/cli/: package.json is one or two folders up from there.
  for (const place of ['../../package.json', '../../../package.json']) {
    try {
      const parsed: unknown = JSON.parse(readFileSync(new URL(place, import.meta.url), 'utf8'));
      if (typeof parsed === 'object' && parsed !== null && 'version' in parsed) return String(parsed.version);
    } catch {
      // Not there: the other place is tried.
    }
  }
  return 'unknown';
}
