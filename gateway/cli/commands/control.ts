/** `status`, `reload` and `selftest`: what is asked of a running gateway. */
import type { Command } from 'commander';
import type { ControlClient, GatewayStatus, SelftestReport } from '../../api/index.ts';
import { type Cli, type ExitCode, FINDINGS, GOOD } from '../cli.ts';
import { type ConfigOptions, readConfig, withConfigOptions, withExamples, withJson } from '../configuration.ts';

interface ControlOptions extends ConfigOptions {
  readonly json?: boolean;
}

export function addControlCommands(program: Command, cli: Cli): void {
  addStatus(program, cli);
  addReload(program, cli);
  addSelftest(program, cli);
}

function addStatus(program: Command, cli: Cli): void {
  const command = program
    .command('status')
    .description('show what the running gateway does (exit 1: it refuses all traffic, 2: none is running)')
    .action(
      cli.action((options: ControlOptions) =>
        withGateway(cli, options, async (gateway) => {
          const status = await gateway.status();
          if (options.json === true) cli.json(status);
          else cli.out(statusText(status));
          return status.refusing === null ? GOOD : FINDINGS;
        }),
      ),
    );
  withExamples(withJson(withConfigOptions(command)), 'sallyport status', 'sallyport status --json');
}

function addReload(program: Command, cli: Cli): void {
  const command = program
    .command('reload')
    .description('load policies and secrets anew; a policy that does not load changes nothing (exit 1)')
    .action(
      cli.action((options: ControlOptions) =>
        withGateway(cli, options, async (gateway) => {
          const report = await gateway.reload();
          if (options.json === true) cli.json(report);
          else if (report.ok) cli.out(`generation ${report.generation} is in force`);
          else cli.out(`refused; generation ${report.generation} stays in force`);
          if (options.json !== true && report.problems !== '') cli.out(report.problems);
          return report.ok ? GOOD : FINDINGS;
        }),
      ),
    );
  withExamples(withJson(withConfigOptions(command)), 'sallyport reload');
}

function addSelftest(program: Command, cli: Cli): void {
  const command = program
    .command('selftest')
    .description('run the boundary self-test inside the running gateway (exit 1: a canary got through)')
    .action(
      cli.action((options: ControlOptions) =>
        withGateway(cli, options, async (gateway) => {
          const report = await gateway.selftest();
          if (options.json === true) cli.json(report);
          else cli.out(selftestText(report));
          return report.ok ? GOOD : FINDINGS;
        }),
      ),
    );
  withExamples(withJson(withConfigOptions(command)), 'sallyport selftest', 'sallyport selftest --json');
}

/** One line a check. */
export function selftestText(report: SelftestReport): string {
  const lines = report.checks.map(
    (check) =>
      `${check.ok ? 'ok  ' : 'FAIL'}  ${check.name}: ${check.ok ? check.got : `expected ${check.expected}, got ${check.got}`}`,
  );
  return [...lines, report.ok ? 'the boundary holds' : 'THE BOUNDARY DOES NOT HOLD: all traffic is refused'].join('\n');
}

function statusText(status: GatewayStatus): string {
  const policies = status.policies.map((policy) => `  ${policy.name}  ${policy.rules} rules  ${policy.digest}`);
  return [
    `started      ${status.startedAt}`,
    `listening    ${status.listeners.join(', ')}`,
    `traffic      ${status.refusing === null ? 'judged by policy' : `REFUSED: ${status.refusing}`}`,
    `callers      ${status.callers}`,
    `connections  ${status.connections}`,
    `requests     ${status.requests}`,
    `audit        ${JSON.stringify(status.audit)}`,
    `policies     generation ${status.generation}`,
    ...policies,
  ].join('\n');
}

async function withGateway(
  cli: Cli,
  options: ConfigOptions,
  use: (gateway: ControlClient) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { controlClient } = await import('../../api/control-client.ts');
  const client = controlClient(readConfig(cli, options).api.socket);
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}
