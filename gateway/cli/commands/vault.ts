/** `vault`: secrets at rest. A value comes from a pipe or a hidden prompt, never from the command line, and is never printed. */
import type { Command } from 'commander';
import type { SecretInfo } from '../../../vault/index.ts';
import type { GatewayConfig } from '../../types.ts';
import { type Cli, FINDINGS, GOOD, UsageError } from '../cli.ts';
import { type ConfigOptions, readConfig, withConfigOptions, withExamples, withJson } from '../configuration.ts';
import { makeVault } from '../first-run.ts';
import { keySource, withVault } from '../open-vault.ts';
import { plainText } from '../plain-text.ts';
import { readValue } from '../prompt.ts';

interface VaultOptions extends ConfigOptions {
  readonly json?: boolean;
}

export function addVault(program: Command, cli: Cli): void {
  const vault = program
    .command('vault')
    .description('secrets at rest: made, filled and listed; values are never shown');
  withExamples(
    vault,
    'sallyport vault init',
    'pass show github | sallyport vault set github/readonly',
    'sallyport vault list',
  );
  addInit(vault, cli);
  addSet(vault, cli);
  addList(vault, cli);
  addShow(vault, cli);
  addRemove(vault, cli);
}

function addInit(vault: Command, cli: Cli): void {
  const command = vault
    .command('init')
    .description('make the key file and the sealed file (exit 1: there is one already)')
    .action(
      cli.action(async (options: VaultOptions) => {
        const config = readConfig(cli, options);
        const made: string[] = [];
        await makeVault(config, keySource(cli, config.vault), made);
        if (options.json === true) cli.json({ made: made.length > 0, file: config.vault.file });
        else cli.out(made.length > 0 ? made.join('\n') : `there is a vault already: ${config.vault.file}`);
        return made.length > 0 ? GOOD : FINDINGS;
      }),
    );
  withExamples(
    withJson(withConfigOptions(command)),
    'sallyport vault init',
    'sallyport vault init --home /srv/sallyport',
  );
}

function addSet(vault: Command, cli: Cli): void {
  const command = vault
    .command('set')
    .description('add a secret, or a new version of it; the value comes from stdin or a hidden prompt')
    .argument('<name>', 'name of the secret, such as github/readonly')
    // Anything more than a name may be a value: commander would repeat it in its message, this command never does.
    .allowUnknownOption()
    .allowExcessArguments()
    .action(
      cli.action(async (name: string, options: VaultOptions, self: Command) => {
        const { isSecretName, MAX_VALUE_BYTES } = await import('../../../vault/index.ts');
        refuseValues(self.args, isSecretName(name));
        const config = readConfig(cli, options);
        const info = await withVault(cli, config, async (open) => {
          const value = await readValue(cli, 'the value', MAX_VALUE_BYTES);
          try {
            return await open.set(name, value, `cli:uid=${process.getuid?.() ?? 'unknown'}`);
          } finally {
            value.fill(0);
          }
        });
        if (options.json === true) cli.json(info);
        else cli.out(`${info.name}: version ${info.version} stored, ${info.sizeBytes} bytes`);
        await noteRunning(cli, config);
        return GOOD;
      }),
    );
  withExamples(
    withJson(withConfigOptions(command)),
    'sallyport vault set github/readonly            # asks, without echo',
    'pass show github | sallyport vault set github/readonly',
  );
}

/** A value on the command line is in the shell's history and in every process list. */
function refuseValues(args: readonly string[], isName: boolean): void {
  if (args.length === 1 && isName) return;
  const message =
    args.length > 1
      ? 'Cannot take a value from the command line: it would be in the shell history and in process lists'
      : 'Cannot take this name: letters, digits and - _ . / only; a value never stands on the command line';
  throw new UsageError(
    `${message}. If a secret was just typed there, replace it. Pipe it in, or run the command with the name alone.`,
  );
}

function addList(vault: Command, cli: Cli): void {
  const command = vault
    .command('list')
    .description('list the secrets by name, without values')
    .action(
      cli.action(async (options: VaultOptions) => {
        const list = await withVault(cli, readConfig(cli, options), (open) => open.list());
        if (options.json === true) cli.json(list);
        else cli.out(list.length === 0 ? 'no secrets' : list.map(infoLine).join('\n'));
        return GOOD;
      }),
    );
  withExamples(withJson(withConfigOptions(command)), 'sallyport vault list', 'sallyport vault list --json');
}

function addShow(vault: Command, cli: Cli): void {
  const command = vault
    .command('show')
    .description('show what is known of a secret; never its value')
    .argument('<name>', 'name of the secret')
    .action(
      cli.action(async (name: string, options: VaultOptions) => {
        const info = await withVault(cli, readConfig(cli, options), (open) => open.info(name));
        if (options.json === true) cli.json(info);
        else cli.out(infoText(info));
        return GOOD;
      }),
    );
  withExamples(withJson(withConfigOptions(command)), 'sallyport vault show github/readonly');
}

function addRemove(vault: Command, cli: Cli): void {
  const command = vault
    .command('remove')
    .description('remove a secret with all its versions')
    .argument('<name>', 'name of the secret')
    .action(
      cli.action(async (name: string, options: VaultOptions) => {
        const config = readConfig(cli, options);
        await withVault(cli, config, (open) => open.remove(name));
        if (options.json === true) cli.json({ removed: name });
        else cli.out(`${name}: removed`);
        await noteRunning(cli, config);
        return GOOD;
      }),
    );
  withExamples(withJson(withConfigOptions(command)), 'sallyport vault remove github/old');
}

/** A running gateway notices by itself, but not at once. */
async function noteRunning(cli: Cli, config: GatewayConfig): Promise<void> {
  const { probeSocket } = await import('../../api/claim-socket.ts');
  if ((await probeSocket(config.api.socket)) !== 'live') return;
  cli.note('sallyport: the running gateway goes by it within 10 s; `sallyport reload` makes that now, and records it');
}

function infoLine(info: SecretInfo): string {
  return `${info.name}  version ${info.version}  ${info.sizeBytes} bytes  ${info.updatedAt}`;
}

function infoText(info: SecretInfo): string {
  return [
    `name      ${info.name}`,
    `version   ${info.version} (${info.versions} kept)`,
    `created   ${info.createdAt}`,
    `updated   ${info.updatedAt}${info.updatedBy === undefined ? '' : ` by ${plainText(info.updatedBy)}`}`,
    `size      ${info.sizeBytes} bytes`,
    'value     never shown',
  ].join('\n');
}
