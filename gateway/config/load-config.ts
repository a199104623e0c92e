/** Loads the configuration: file, flags and environment become one checked {@link GatewayConfig}; without any of them the defaults hold. */
import { readFileSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import type { PolicyProblem } from '../../policy/types.ts';
import type { CallerConfig, GatewayConfig, ListenAddress, PinnedUpstream, VaultKeyConfig } from '../types.ts';
import { checkConflicts } from './check-conflicts.ts';
import { type ConfigDocument, configShape } from './config-shape.ts';
import { resolveHome } from './home.ts';
import type { Report, ShapeProblem, ValuePath } from './shape.ts';
import { parseListen } from './values.ts';
import { readYamlSource, type YamlSource } from './yaml-source.ts';

/** What the command line may set; each wins over the file. */
export interface ConfigFlags {
  /** Path of the configuration file; it must exist. */
  readonly config?: string;
  readonly home?: string;
  /** `host:port`, once or more. */
  readonly listen?: readonly string[];
  /** `host:port`, or `off`. */
  readonly apiListen?: string;
  /** Name of the default policy. */
  readonly policy?: string;
}

export interface LoadConfigInput {
  readonly flags: ConfigFlags;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The home for who runs this; default: the process's user. */
  readonly user?: { readonly isRoot: boolean; readonly home: string };
  /** Reads a file, throws like `fs`; given by tests. */
  readonly readFile?: (path: string) => string | Uint8Array;
}

/** A problem has the shape of a policy's: file, line, column, code, hint. */
export type ConfigProblem = PolicyProblem;

export type LoadedConfig =
  | {
      readonly ok: true;
      readonly config: GatewayConfig;
      readonly warnings: readonly ConfigProblem[];
      /** The file that was read, or null when there was none. */
      readonly file: string | null;
    }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] };

/**
 * Gives the whole configuration or every problem of it at once. Never throws for what a user wrote.
 * Relative paths resolve against the home, not the working directory: the same file means the same for everybody.
 */
export function loadConfig(input: LoadConfigInput): LoadedConfig {
  const home = resolveHome(input);
  const problems: ConfigProblem[] = [];
  const found = findFile(input, home, problems);
  const source = found === null ? null : readYamlSource(found.bytes, found.file);
  if (source?.ok === false) problems.push(...source.problems);
  const report = reporter(source, problems);
  const document = source?.ok === true ? (configShape.read(source.value ?? {}, [], report) ?? {}) : {};
  const flags = readFlags(input.flags, problems);
  const config = withDefaults(document, flags, home);
  // Conflicts are looked for among values that are each right; otherwise they would repeat what is said already.
  if (!problems.some(isError)) checkConflicts(document, config, report);
  if (problems.some(isError)) return { ok: false, problems: sorted(problems) };
  return { ok: true, config, warnings: sorted(problems), file: found?.file ?? null };
}

function findFile(
  input: LoadConfigInput,
  home: string,
  problems: ConfigProblem[],
): { file: string; bytes: string | Uint8Array } | null {
  const named = input.flags.config ?? (input.env.SALLYPORT_CONFIG || undefined);
  const file = named === undefined ? join(home, 'sallyport.yaml') : resolve(named);
  try {
    return { file, bytes: (input.readFile ?? readFileSync)(file) };
  } catch (error) {
    if (named === undefined && errnoOf(error) === 'ENOENT') return null;
    const state = errnoOf(error) ?? 'it could not be read';
    problems.push(problemAt(file, 'CONFIG_UNREADABLE', `Cannot read the configuration: ${state}`));
  }
  return null;
}

function reporter(source: YamlSource | null, problems: ConfigProblem[]): Report {
  return (path, problem) => {
    const place =
      source?.ok === true ? source.locate(path, problem.atKey === true) : { file: 'defaults', line: 1, column: 1 };
    problems.push({ ...place, ...problemFields(path, problem) });
  };
}

function problemFields(path: ValuePath, problem: ShapeProblem) {
  return {
    code: problem.code,
    severity: problem.code === 'CONFIG_EXPOSED' ? ('warning' as const) : ('error' as const),
    message: path.length === 0 ? problem.message : `${pathText(path)}: ${problem.message}`,
    ...(problem.hint === undefined ? {} : { hint: problem.hint }),
  };
}

interface ReadFlags {
  readonly listen?: readonly ListenAddress[];
  readonly apiListen?: ListenAddress | null;
  readonly policy?: string;
}

function readFlags(flags: ConfigFlags, problems: ConfigProblem[]): ReadFlags {
  const refuse = (flag: string, form: string) =>
    problems.push(problemAt('command line', 'CONFIG_VALUE', `${flag}: expected ${form}`));
  const address = (flag: string, value: string): ListenAddress | undefined => {
    const parsed = parseListen(value);
    if (parsed === undefined) refuse(flag, 'an address and port like 127.0.0.1:3128');
    return parsed;
  };
  const listen = flags.listen?.map((value) => address('--listen', value)).filter((value) => value !== undefined);
  const apiListen = flags.apiListen === 'off' ? null : flags.apiListen && address('--api-listen', flags.apiListen);
  if (flags.policy !== undefined && !/^[a-z0-9-]{1,63}$/.test(flags.policy)) refuse('--policy', 'a policy name');
  return {
    ...(listen === undefined || listen.length === 0 ? {} : { listen }),
    ...(apiListen === undefined || apiListen === '' ? {} : { apiListen }),
    ...(flags.policy === undefined ? {} : { policy: flags.policy }),
  };
}

function withDefaults(document: ConfigDocument, flags: ReadFlags, home: string): GatewayConfig {
  const place = (path: string): string => (isAbsolute(path) ? path : join(home, path));
  const { proxy, api, policies, vault, audit, egress } = document;
  return {
    home,
    proxy: { listen: flags.listen ?? proxy?.listen ?? [{ host: '127.0.0.1', port: 3128 }] },
    api: {
      listen: flags.apiListen === undefined ? (api?.listen ?? null) : flags.apiListen,
      socket: place(api?.socket ?? 'run/control.sock'),
    },
    policies: { dir: place(policies?.dir ?? 'policies'), default: flags.policy ?? policies?.default ?? 'default' },
    vault: { file: place(vault?.file ?? 'vault.sealed'), key: vaultKey(vault, place) },
    audit: {
      dir: place(audit?.dir ?? 'audit'),
      fsync: audit?.fsync ?? 'interval',
      checkpointEveryMs: audit?.checkpointEvery ?? 60_000,
      rotateBytes: audit?.rotateAt ?? 256 * 1024 ** 2,
      maxQueued: audit?.maxQueued ?? 8192,
    },
    upstreams: (document.upstreams ?? []).map((upstream) => pinned(upstream, place)),
    egress: {
      parentProxy: egress?.parentProxy ?? null,
      extraCa: egress?.extraCa === undefined ? null : place(egress.extraCa),
      resolver: egress?.resolver ?? [],
    },
    callers: (document.callers ?? []).map((caller) => callerOf(caller, document, flags, place)),
  };
}

type Place = (path: string) => string;
type Upstream = NonNullable<ConfigDocument['upstreams']>[number];
type Caller = NonNullable<ConfigDocument['callers']>[number];

function vaultKey(vault: ConfigDocument['vault'], place: Place): VaultKeyConfig {
  return vault?.passphrase ?? { kind: 'file', path: place(vault?.key ?? 'vault.key') };
}

function pinned(upstream: Upstream, place: Place): PinnedUpstream {
  return {
    name: upstream.name ?? '',
    address: upstream.address ?? '',
    port: upstream.port ?? null,
    ca: upstream.ca === undefined ? null : place(upstream.ca),
  };
}

function callerOf(caller: Caller, document: ConfigDocument, flags: ReadFlags, place: Place): CallerConfig {
  const file = caller.token?.startsWith('file:') === true ? caller.token.slice('file:'.length) : undefined;
  return {
    id: caller.id ?? '',
    policy: caller.policy ?? flags.policy ?? document.policies?.default ?? 'default',
    token: file === undefined ? (caller.token ?? null) : `file:${place(file)}`,
    socket: caller.socket === undefined ? null : place(caller.socket),
    labels: caller.labels ?? {},
  };
}

function problemAt(file: string, code: 'CONFIG_UNREADABLE' | 'CONFIG_VALUE', message: string): ConfigProblem {
  return { code, severity: 'error', message, file, line: 1, column: 1 };
}

function sorted(problems: readonly ConfigProblem[]): readonly ConfigProblem[] {
  return [...problems].sort((a, b) => a.line - b.line || a.column - b.column);
}

function isError(problem: ConfigProblem): boolean {
  return problem.severity === 'error';
}

/** `upstreams[2].address`; keys a user wrote are cut and cleaned, they may hold anything. */
function pathText(path: ValuePath): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${JSON.stringify(step).slice(1, -1).slice(0, 64)}`))
    .join('')
    .replace(/^\./, '');
}

function errnoOf(error: unknown): string | undefined {
  if (typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string')
    return error.code;
  return undefined;
}
