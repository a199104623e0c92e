/** `up`: everything this machine can do, in the foreground; `up --check` shows it once on servers of its own and ends. */
import { mkdtempSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { probeSocket } from '../../api/claim-socket.ts';
import type { AttachedSandbox } from '../../api/index.ts';
import { loadConfig } from '../../config/index.ts';
import type { DemoStep } from '../../selftest/demo.ts';
import type { GatewayConfig } from '../../types.ts';
import { type Cli, type ExitCode, FINDINGS, GOOD, UsageError } from '../cli.ts';
import { ConfigRefused, readConfig, withExamples, withJson } from '../configuration.ts';
import { checksText, examine, isFit } from '../doctor/index.ts';
import { prepareHome } from '../first-run.ts';
import { keySource, withKeySource } from '../open-vault.ts';
import { guardProcess, processFacts } from '../process-hygiene.ts';
import type { Serving } from '../serve.ts';
import { untilStopped } from '../until-stopped.ts';
import { selftestText } from './control.ts';
import { listeningLines, reloadAndSay, type ServeOptions, withServeOptions } from './gateway.ts';

interface UpOptions extends ServeOptions {
  readonly check?: boolean;
  readonly json?: boolean;
}

export function addUp(program: Command, cli: Cli): void {
  const command = program
    .command('up')
    .description(
      'look at the machine, make what is missing, start the gateway, test the boundary, stay in the foreground',
    )
    .option(
      '--check',
      'in a temporary home: start, test, show requests end to end, stop; exit 0 only if all is as expected',
    )
    .action(
      cli.action(async (options: UpOptions) => {
        guardProcess(processFacts(cli.env), { unsafeDebug: options.unsafeDebug === true });
        return options.check === true ? check(cli, options.json === true) : up(cli, options);
      }),
    );
  withExamples(
    withJson(withServeOptions(command)),
    'sallyport up',
    'sallyport up --listen 127.0.0.1:8080',
    'sallyport up --check',
  );
}

async function up(cli: Cli, options: UpOptions): Promise<ExitCode> {
  const config = withKeySource(cli, readConfig(cli, options));
  if ((await probeSocket(config.api.socket)) === 'live') {
    throw new UsageError(`Cannot start: a gateway of this home is running already (${config.api.socket})`);
  }
  const say = (title: string, text: string): void => {
    if (options.json !== true && text !== '') cli.out(`${title}\n${indent(text)}`);
  };
  const checks = await examine(config);
  say('machine', checksText(checks));
  if (!isFit(checks)) throw new UsageError('Cannot start: something that is needed is missing (`sallyport doctor`)');
  const made = await prepareHome(config, keySource(cli, config.vault));
  say('first run', made.join('\n'));
  const { serve } = await import('../serve.ts');
  const serving = await serve(config);
  try {
    say('gateway', listeningLines(serving).join('\n'));
    const selftest = await serving.gateway.selftest();
    say('boundary self-test', selftestText(selftest));
    const identity = await attachUser(serving, config);
    say('how to use it', usageText(identity, config));
    if (options.json === true) cli.json({ checks, made, status: serving.gateway.status(), selftest, identity });
    const signal = await untilStopped({ onHangup: () => void reloadAndSay(cli, serving) });
    cli.note(`${signal}: stopping`);
    return serving.gateway.status().refusing === null ? GOOD : FINDINGS;
  } finally {
    await serving.close();
  }
}

/** How the user at this terminal reaches the gateway without `run`; it lives as long as this process. */
type Identity = Pick<AttachedSandbox, 'id' | 'proxyUrl' | 'caBundlePath'>;

async function attachUser(serving: Serving, config: GatewayConfig): Promise<Identity> {
  const options = { policy: config.policies.default, labels: { via: 'up' }, actor: 'up' };
  const { id, proxyUrl, caBundlePath } = await serving.gateway.attach(options);
  return { id, proxyUrl, caBundlePath };
}

function usageText(identity: Identity, config: GatewayConfig): string {
  return [
    'sallyport run -- curl https://example.com/',
    `curl --proxy ${identity.proxyUrl} --cacert ${identity.caBundlePath} https://example.com/`,
    `policy   ${config.policies.default} in ${config.policies.dir}  (edit, then \`sallyport reload\`)`,
    'records  sallyport audit tail --follow',
    'Ctrl-C stops it; a second one at once',
  ].join('\n');
}

async function check(cli: Cli, asJson: boolean): Promise<ExitCode> {
  const home = mkdtempSync(join(tmpdir(), 'sallyport-check-'));
  const onSignal = (signal: NodeJS.Signals): void => {
    rmSync(home, { recursive: true, force: true });
    process.exit(128 + constants.signals[signal]);
  };
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  try {
    const config = checkConfig(home);
    const say = (text: string): void => {
      if (!asJson) cli.out(text);
    };
    const checks = await examine(config);
    say(`machine\n${indent(checksText(checks))}`);
    const shown = await demonstrate(cli, config, say);
    const ok = isFit(checks) && shown.ok;
    if (asJson) cli.json({ ...shown, ok, checks });
    say(ok ? '\nall as expected' : '\nNOT AS EXPECTED');
    return ok ? GOOD : FINDINGS;
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
    rmSync(home, { recursive: true, force: true });
  }
}

async function demonstrate(cli: Cli, config: GatewayConfig, say: (text: string) => void) {
  const key = keySource(cli, config.vault);
  await prepareHome(config, key);
  const { prepareDemonstration } = await import('../../selftest/demo.ts');
  const { serve } = await import('../serve.ts');
  const demonstration = await prepareDemonstration(config, key);
  const steps: DemoStep[] = [];
  const onStep = (step: DemoStep): void => {
    steps.push(step);
    say(stepText(steps.length, step));
  };
  let serving: Serving | null = null;
  try {
    serving = await serve(demonstration.config);
    say(`gateway\n${indent(listeningLines(serving).join('\n'))}`);
    const selftest = await serving.gateway.selftest();
    say(`boundary self-test\n${indent(selftestText(selftest))}\ndemonstration`);
    const isShown = await demonstration.run(serving.gateway, onStep);
    await serving.close();
    const isAudited = await demonstration.audit(onStep);
    return { ok: selftest.ok && isShown && isAudited, selftest, steps };
  } finally {
    await serving?.close();
    await demonstration.close();
  }
}

/** The defaults, in a home of its own and on free ports: nothing of the user's is read or touched. */
function checkConfig(home: string): GatewayConfig {
  const loaded = loadConfig({ flags: { home, listen: ['127.0.0.1:0'] }, env: {} });
  if (!loaded.ok) throw new ConfigRefused(loaded.problems);
  return loaded.config;
}

function stepText(number: number, step: DemoStep): string {
  return indent(`${step.ok ? 'ok  ' : 'FAIL'}  ${number}. ${step.name}\n${indent(step.lines.join('\n'), '         ')}`);
}

function indent(text: string, by = '  '): string {
  return text.replace(/^/gm, by);
}
