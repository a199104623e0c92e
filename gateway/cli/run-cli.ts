/** One invocation of the command line, from arguments to exit code. */
import { CommanderError } from 'commander';
import { PolicyError } from '../../policy/errors.ts';
import { VaultError } from '../../vault/errors.ts';
import { GatewayError } from '../errors.ts';
import { Cli, type CliStreams, COULD_NOT_RUN, type ExitCode, GOOD, UsageError } from './cli.ts';
import { ConfigRefused } from './configuration.ts';
import { createProgram } from './program.ts';

/** Runs the command that `args` name. Never throws; what went wrong is on stderr, and on stdout too with `--json`. */
export async function runCli(args: readonly string[], streams: CliStreams): Promise<ExitCode> {
  const cli = new Cli(streams);
  try {
    await createProgram(cli).parseAsync(args, { from: 'user' });
    return cli.exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? GOOD : COULD_NOT_RUN;
    const { code, message } = describe(error);
    cli.note(`sallyport: ${message}${code === null ? '' : ` (${code})`}`);
    const hint = hints[code ?? ''];
    if (hint !== undefined) cli.note(`sallyport: ${hint}`);
    if (wantsJson(args)) cli.json({ error: { code: code ?? 'internal', message } });
    return COULD_NOT_RUN;
  }
}

function describe(error: unknown): { code: string | null; message: string } {
  if (error instanceof GatewayError || error instanceof VaultError || error instanceof PolicyError) {
    // A wrong use below the vault's door (no terminal, lines that differ) is what the user has to know.
    const why = error.cause instanceof UsageError ? `: ${error.cause.message}` : '';
    return { code: error.code, message: `${error.message}${why}` };
  }
  if (error instanceof ConfigRefused) return { code: 'GATEWAY_CONFIG_INVALID', message: error.message };
  if (error instanceof UsageError) return { code: null, message: error.message };
  return { code: 'internal', message: error instanceof Error ? error.message : String(error) };
}

/** What to do next, where one step is right for everybody. */
const hints: Readonly<Record<string, string>> = {
  VAULT_FILE_MISSING: '`sallyport vault init` makes one',
  GATEWAY_NOT_RUNNING: '`sallyport up` starts one',
  GATEWAY_AUDIT_LOCKED: 'one gateway a home: stop the other, or give this one another --home',
};

/** Of our own arguments only: what follows `--` belongs to somebody else's command. */
function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return (end === -1 ? args : args.slice(0, end)).includes('--json');
}
