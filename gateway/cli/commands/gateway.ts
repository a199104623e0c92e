/** `gateway`: the gateway as a service; says little, stops at SIGTERM, reloads at SIGHUP. */
import type { Command } from 'commander';
import { type Cli, FINDINGS, GOOD } from '../cli.ts';
import { type ConfigOptions, readConfig, withConfigOptions, withExamples } from '../configuration.ts';
import { runtimeChecks } from '../doctor/index.ts';
import { prepareHome } from '../first-run.ts';
import { keySource, withKeySource } from '../open-vault.ts';
import { guardProcess, processFacts } from '../process-hygiene.ts';
import type { Serving } from '../serve.ts';
import { untilStopped } from '../until-stopped.ts';

export interface ServeOptions extends ConfigOptions {
  readonly listen?: string[];
  readonly apiListen?: string;
  readonly policy?: string;
  readonly unsafeDebug?: boolean;
}

export function addGateway(program: Command, cli: Cli): void {
  const command = program
    .command('gateway')
    .description('run the gateway as a service: SIGTERM stops it, SIGHUP reloads policies and secrets')
    .action(
      cli.action(async (options: ServeOptions) => {
        guardProcess(processFacts(cli.env), { unsafeDebug: options.unsafeDebug === true });
        for (const line of warnings()) cli.note(line);
        const config = withKeySource(cli, readConfig(cli, options));
        for (const line of await prepareHome(config, keySource(cli, config.vault))) cli.note(line);
        const { serve } = await import('../serve.ts');
        const serving = await serve(config);
        for (const line of listeningLines(serving)) cli.note(line);
        await untilStopped({ onHangup: () => void reloadAndSay(cli, serving) });
        await serving.close();
        return serving.gateway.status().refusing === null ? GOOD : FINDINGS;
      }),
    );
  withExamples(withServeOptions(command), 'sallyport gateway', 'sallyport gateway --config /etc/sallyport.yaml');
}

/** What of the process is not as it should be, but no reason to refuse. */
function warnings(): readonly string[] {
  return runtimeChecks()
    .filter((check) => check.state !== 'ok')
    .map((check) => `warning    ${check.name}: ${check.why}${check.how === null ? '' : ` (${check.how})`}`);
}

/** Options of everything that starts a gateway to stay. */
export function withServeOptions(command: Command): Command {
  return withConfigOptions(command)
    .option('--listen <address...>', 'proxy address like 127.0.0.1:3128; wins over the configuration')
    .option('--api-listen <address>', 'address of /healthz, /readyz and /metrics, or off')
    .option('--policy <name>', 'name of the default policy')
    .option('--unsafe-debug', 'start although a debugger or a memory dump could reach the secrets');
}

/** Where it listens and whether it lets anything through. */
export function listeningLines(serving: Serving): readonly string[] {
  const { refusing } = serving.gateway.status();
  return [
    ...serving.gateway.proxyAddresses.map(
      ({ host, port }) => `proxy      ${host.includes(':') ? `[${host}]` : host}:${port}`,
    ),
    `control    ${serving.controlSocket}`,
    `health     ${serving.healthAddress === null ? 'off (api.listen)' : `http://${serving.healthAddress}/readyz`}`,
    refusing === null ? 'traffic    judged by policy' : `traffic    REFUSED: ${refusing}`,
  ];
}

/** A reload asked for by signal has nobody to answer but the log. */
export async function reloadAndSay(cli: Cli, serving: Serving): Promise<void> {
  try {
    const report = await serving.gateway.reload('signal:SIGHUP');
    cli.note(report.ok ? `reload: generation ${report.generation} is in force` : `reload refused:\n${report.problems}`);
  } catch (error) {
    cli.note(`reload failed: ${error instanceof Error ? error.message : String(error)}`);
  }
}
