/** `doctor`: what this machine can do, what is missing, how to get it. */
import type { Command } from 'commander';
import { type Cli, FINDINGS, GOOD } from '../cli.ts';
import { type ConfigOptions, readConfig, withConfigOptions, withExamples, withJson } from '../configuration.ts';
import { checksText, examine, isFit } from '../doctor/index.ts';

export function addDoctor(program: Command, cli: Cli): void {
  const command = program
    .command('doctor')
    .description(
      'show what this machine can do, what is missing and how to get it (exit 1: something needed is missing)',
    )
    .action(
      cli.action(async (options: ConfigOptions & { json?: boolean }) => {
        const checks = await examine(readConfig(cli, options));
        const isOk = isFit(checks);
        if (options.json === true) cli.json({ ok: isOk, checks });
        else cli.out(checksText(checks));
        return isOk ? GOOD : FINDINGS;
      }),
    );
  withExamples(
    withJson(withConfigOptions(command)),
    'sallyport doctor',
    'sallyport doctor --json --home /srv/sallyport',
  );
}
