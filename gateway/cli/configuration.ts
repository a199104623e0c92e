/** The configuration as commands take it: common options, problems told, the loaded config given. */
import { type Command, Option } from 'commander';
import { formatProblems } from '../../policy/index.ts';
import type { ConfigProblem } from '../config/index.ts';
import { type ConfigFlags, loadConfig } from '../config/index.ts';
import type { GatewayConfig } from '../types.ts';
import type { Cli } from './cli.ts';

export interface ConfigOptions {
  readonly home?: string;
  readonly config?: string;
}

/** Adds `--home` and `--config`. */
export function withConfigOptions(command: Command): Command {
  return command
    .addOption(new Option('--home <dir>', 'Sallyport home (default: $SALLYPORT_HOME or the place for this user)'))
    .addOption(
      new Option('--config <file>', 'configuration file (default: $SALLYPORT_CONFIG or sallyport.yaml of the home)'),
    );
}

/** Adds `--json`. */
export function withJson(command: Command): Command {
  return command.option('--json', 'print one JSON document');
}

/** Lines after a command's help. Every command has some: an example says more than a grammar. */
export function withExamples(command: Command, ...examples: readonly string[]): Command {
  return command.addHelpText('after', `\nExamples:\n${examples.map((line) => `  $ ${line}`).join('\n')}`);
}

/**
 * The configuration; warnings are noted on stderr.
 * @throws ConfigRefused with every problem
 */
export function readConfig(cli: Cli, flags: ConfigFlags): GatewayConfig {
  const loaded = loadConfig({ flags, env: cli.env });
  if (!loaded.ok) throw new ConfigRefused(loaded.problems);
  for (const warning of loaded.warnings) cli.note(formatProblems([warning]));
  return loaded.config;
}

/** The configuration has errors; the message lists them all. */
export class ConfigRefused extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(`Cannot use the configuration:\n${formatProblems(problems)}`);
    this.name = 'ConfigRefused';
    this.problems = problems;
  }
}
