/** `run`: a command with an identity of its own whose proxy and trust settings point at the gateway. */
import type { Command } from 'commander';
import { probeSocket } from '../../api/claim-socket.ts';
import type { AttachedSandbox } from '../../api/index.ts';
import type { ConfigFlags } from '../../config/index.ts';
import { GatewayError } from '../../errors.ts';
import type { GatewayConfig } from '../../types.ts';
import { childEnvironment } from '../child-environment.ts';
import { type Cli, type ExitCode, UsageError } from '../cli.ts';
import { type ConfigOptions, readConfig, withConfigOptions, withExamples } from '../configuration.ts';
import { policyDocuments } from '../policy-files.ts';
import { runChild } from '../run-child.ts';
import { secretNames } from '../secret-names.ts';

interface RunOptions extends ConfigOptions {
  readonly policy?: string;
  readonly label?: Record<string, string>;
  readonly quiet?: boolean;
}

export function addRun(program: Command, cli: Cli): void {
  const command = program
    .command('run')
    .description(
      'run a command that is told to go out through the gateway; its exit code is passed on (127: not found)',
    )
    .argument('<command...>', 'the command and its arguments, after --')
    .option(
      '--policy <name-or-file>',
      'name of a policy of the gateway, or a policy file (default: the default policy)',
    )
    .option('--label <key=value>', 'label for the audit log; may be given more than once', labelOf)
    .option('--quiet', 'do not say how far the command is held back')
    .action(
      cli.action(async ([name, ...args]: string[], options: RunOptions) => {
        if (name === undefined) throw new UsageError('Cannot run: no command given');
        const config = readConfig(cli, flagsOf(options));
        const session = await openSession(cli, config, options);
        try {
          if (options.quiet !== true) cli.note(enforcementNote(session.place));
          return await start(cli, { name, args, config, session });
        } finally {
          await session.close();
        }
      }),
    );
  withExamples(
    withConfigOptions(command),
    'sallyport run -- curl https://example.com/',
    'sallyport run --policy ./agent.yaml --label task=42 -- npm install',
  );
}

/** An identity at a gateway, for as long as the command runs. */
interface Session {
  readonly attached: AttachedSandbox;
  /** Folder of the policies it may be judged by. */
  readonly policyDir: string;
  readonly place: string;
  close(): Promise<void>;
}

async function openSession(cli: Cli, config: GatewayConfig, options: RunOptions): Promise<Session> {
  const labels = options.label ?? {};
  const file = options.policy !== undefined && isFile(options.policy) ? options.policy : null;
  // A running gateway takes policies from its own folder only, so a file needs a gateway for this command alone.
  if (file === null && (await probeSocket(config.api.socket)) === 'live') return joinRunning(config, labels);
  const { startEphemeral } = await import('../start-ephemeral.ts');
  const ephemeral = await startEphemeral(cli, config, file);
  try {
    const policy = ephemeral.policy;
    const attached = await ephemeral.gateway.attach({
      policy,
      labels,
      actor: `cli:uid=${process.getuid?.() ?? 'unknown'}`,
    });
    return { attached, policyDir: ephemeral.policyDir, place: 'a gateway of its own', close: ephemeral.close };
  } catch (error) {
    await ephemeral.close();
    throw error;
  }
}

async function joinRunning(config: GatewayConfig, labels: Record<string, string>): Promise<Session> {
  const { controlClient } = await import('../../api/control-client.ts');
  const client = controlClient(config.api.socket);
  try {
    const { refusing } = await client.status();
    if (refusing !== null) {
      throw new GatewayError('GATEWAY_SELFTEST_FAILED', `Cannot run: the gateway refuses all traffic: ${refusing}`);
    }
    const attached = await client.attach({ policy: config.policies.default, labels });
    const close = async (): Promise<void> => {
      try {
        await client.detach(attached.id);
      } catch {
        // The gateway may have stopped meanwhile: then the identity went with it.
      } finally {
        await client.close();
      }
    };
    return { attached, policyDir: config.policies.dir, place: 'the running gateway', close };
  } catch (error) {
    await client.close();
    throw error;
  }
}

interface Start {
  readonly name: string;
  readonly args: readonly string[];
  readonly config: GatewayConfig;
  readonly session: Session;
}

function start(cli: Cli, { name, args, config, session }: Start): Promise<ExitCode> {
  const secrets = secretNames(config, policyDocuments(session.policyDir));
  const env = childEnvironment({ env: cli.env, attached: session.attached, secretNames: secrets });
  return runChild(name, args, { env, hasTerminal: cli.stdin.isTTY === true, note: (text) => cli.note(text) });
}

function enforcementNote(place: string): string {
  return (
    `sallyport: kernel enforcement: off — the command is steered to ${place} by its environment only;\n` +
    'sallyport: a program that ignores its proxy settings is not held back by this version (--quiet hides this)'
  );
}

/** A file is not a policy of the configuration. */
function flagsOf({ home, config, policy }: RunOptions): ConfigFlags {
  return {
    ...(home === undefined ? {} : { home }),
    ...(config === undefined ? {} : { config }),
    ...(policy === undefined || isFile(policy) ? {} : { policy }),
  };
}

/** A policy's name holds neither a slash nor a dot. */
function isFile(policy: string): boolean {
  return /[./]/.test(policy);
}

function labelOf(text: string, before: Record<string, string> | undefined): Record<string, string> {
  const match = /^([a-zA-Z0-9._/-]{1,63})=([^\x00-\x1f\x7f]{0,256})$/.exec(text);
  if (match?.[1] === undefined) throw new UsageError('Cannot take this label: expected key=value');
  return { ...before, [match[1]]: match[2] ?? '' };
}
