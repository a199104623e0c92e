/** `ca`: the interception authority's certificate, for trust stores. Its key never leaves the vault. */
import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import type { InterceptionCa, Vault } from '../../../vault/index.ts';
import { type Cli, GOOD } from '../cli.ts';
import { type ConfigOptions, readConfig, withConfigOptions, withExamples, withJson } from '../configuration.ts';
import { prepareHome } from '../first-run.ts';
import { keySource, withVault } from '../open-vault.ts';

interface CaOptions extends ConfigOptions {
  readonly json?: boolean;
}

export function addCa(program: Command, cli: Cli): void {
  const ca = program.command('ca').description('the authority that signs what intercepted clients see');
  withExamples(ca, 'sallyport ca show', 'sallyport ca export > sallyport-ca.pem');
  addShow(ca, cli);
  addExport(ca, cli);
}

function addShow(ca: Command, cli: Cli): void {
  const command = ca
    .command('show')
    .description('show subject, fingerprint and validity')
    .action(
      cli.action(async (options: CaOptions) => {
        const authority = await openCa(cli, options);
        const shown = {
          commonName: authority.commonName,
          fingerprint256: authority.fingerprint256,
          notBefore: authority.notBefore.toISOString(),
          notAfter: authority.notAfter.toISOString(),
        };
        if (options.json === true) cli.json(shown);
        else {
          cli.out(`name         ${shown.commonName}\nsha256       ${shown.fingerprint256}`);
          cli.out(`valid from   ${shown.notBefore}\nvalid until  ${shown.notAfter}`);
        }
        authority.close();
        return GOOD;
      }),
    );
  withExamples(withJson(withConfigOptions(command)), 'sallyport ca show', 'sallyport ca show --json');
}

function addExport(ca: Command, cli: Cli): void {
  const command = ca
    .command('export')
    .description('print the certificate as PEM')
    .action(
      cli.action(async (options: CaOptions) => {
        const authority = await openCa(cli, options);
        if (options.json === true) cli.json({ certificate: authority.certPem });
        else cli.raw(authority.certPem);
        authority.close();
        return GOOD;
      }),
    );
  withExamples(
    withJson(withConfigOptions(command)),
    'sallyport ca export > /usr/local/share/ca-certificates/sallyport.crt && update-ca-certificates',
  );
}

/** The authority of this home; made at first use, as the gateway would. */
async function openCa(cli: Cli, options: CaOptions): Promise<InterceptionCa> {
  const config = readConfig(cli, options);
  if (!existsSync(config.vault.file)) {
    for (const line of await prepareHome(config, keySource(cli, config.vault))) cli.note(line);
  }
  const { InterceptionCa } = await import('../../../vault/index.ts');
  return withVault(cli, config, (vault: Vault) => InterceptionCa.open({ store: vault }));
}
