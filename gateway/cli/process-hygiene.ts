/** A gateway that can be looked into from outside would hand its secrets to whoever looks: such a start is refused. */
import { url as inspectorUrl } from 'node:inspector';
import { UsageError } from './cli.ts';

export interface ProcessFacts {
  readonly execArgv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isInspected: boolean;
}

/** What this process was started with. */
export function processFacts(env: ProcessFacts['env']): ProcessFacts {
  return { execArgv: process.execArgv, env, isInspected: inspectorUrl() !== undefined };
}

/**
 * What opens this process to others, in words for the user; empty is as it should be.
 * NODE_TLS_REJECT_UNAUTHORIZED counts: a gateway that believes any upstream would hand credentials to it.
 */
export function unsafeSettings(facts: ProcessFacts): readonly string[] {
  const options = [...facts.execArgv, ...(facts.env.NODE_OPTIONS ?? '').split(/[\s"']+/)];
  const unsafe = options.map(optionName).filter((name) => unsafeOptions.some((pattern) => pattern.test(name)));
  const found = unsafe.map((name) => `${name} opens the process or writes its memory to disk`);
  if (facts.isInspected && found.length === 0) found.push('the inspector is listening');
  if (facts.env.NODE_TLS_REJECT_UNAUTHORIZED === '0') {
    found.push('NODE_TLS_REJECT_UNAUTHORIZED=0 turns the verification of upstreams off');
  }
  return found;
}

/**
 * Refuses an unsafe start unless it was asked for, and keeps SIGUSR1 from opening the inspector later.
 * @throws UsageError with everything that is unsafe
 */
export function guardProcess(facts: ProcessFacts, options: { unsafeDebug: boolean }): void {
  const found = unsafeSettings(facts);
  if (found.length > 0 && !options.unsafeDebug) {
    throw new UsageError(
      `Cannot start: ${found.join('; ')}. For debugging without real secrets there is --unsafe-debug.`,
    );
  }
  // Node opens its inspector on 127.0.0.1:9229 for any local user at SIGUSR1; a listener of ours takes that away.
  if (!options.unsafeDebug) process.on('SIGUSR1', ignore);
}

/** Node takes `_` for `-` in its options, and a value after `=`. */
function optionName(option: string): string {
  return option.split('=', 1).join('').replaceAll('_', '-');
}

const unsafeOptions: readonly RegExp[] = [
  /^--(inspect|debug)(-|$)/,
  /^--heapsnapshot-/,
  /^--heap-prof/,
  /^--abort-on-uncaught-exception$/,
  // Diagnostic reports hold the whole environment.
  /^--report-(on|uncaught|signal)/,
  // The keys of every TLS session, in a file.
  /^--tls-keylog$/,
  /^--trace-tls$/,
];

function ignore(): void {}
