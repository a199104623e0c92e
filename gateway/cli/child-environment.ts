/** The environment of a command that `run` starts: its way out, whom it trusts, and none of our secrets. */
import type { AttachedSandbox } from '../api/index.ts';

export interface ChildEnvironmentInput {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly attached: Pick<AttachedSandbox, 'proxyUrl' | 'caBundlePath' | 'environment'>;
  /** Names of variables that hold secrets of the gateway: what `env:` references of policy and configuration name. */
  readonly secretNames: readonly string[];
}

/**
 * The parent's environment without our own variables and secrets, with proxy and CA variables set over whatever was there.
 * A name in NO_PROXY would go around the gateway, so the list is emptied.
 */
export function childEnvironment(input: ChildEnvironmentInput): Record<string, string> {
  const secret = new Set(input.secretNames);
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(input.env)) {
    if (value === undefined || secret.has(name) || isOurs(name) || isProxyName(name)) continue;
    kept[name] = value;
  }
  for (const name of proxyNames) {
    kept[name] = input.attached.proxyUrl;
    kept[name.toLowerCase()] = input.attached.proxyUrl;
  }
  for (const name of caNames) kept[name] = input.attached.caBundlePath;
  for (const name of caNamesWhereSet) if (kept[name] !== undefined) kept[name] = input.attached.caBundlePath;
  return { ...kept, NO_PROXY: '', no_proxy: '', NODE_USE_ENV_PROXY: '1', ...input.attached.environment };
}

const proxyNames = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'] as const;

/** Whatever a client reads in place of, or beside, the system's store (INTERFACES: the sandbox's environment). */
const caNames = [
  'SSL_CERT_FILE',
  'NODE_EXTRA_CA_CERTS',
  'REQUESTS_CA_BUNDLE',
  'CURL_CA_BUNDLE',
  'GIT_SSL_CAINFO',
  'PIP_CERT',
  'CARGO_HTTP_CAINFO',
  'AWS_CA_BUNDLE',
  'DENO_CERT',
] as const;

/** Set by nobody but a user who has such a tool: then its list must hold our CA too. */
const caNamesWhereSet = [
  'CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE',
  'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH',
  'HTTPLIB2_CA_CERTS',
  'NIX_SSL_CERT_FILE',
  'NPM_CONFIG_CAFILE',
  'npm_config_cafile',
] as const;

/** SALLYPORT_HOME, a passphrase, … : of no use to the command, and the home is where the vault is. */
function isOurs(name: string): boolean {
  return name.toUpperCase().startsWith('SALLYPORT_');
}

/** Also the forms of tools with their own names for it: any of them would win over, or go around, the gateway. */
function isProxyName(name: string): boolean {
  return /^((http|https|ftp|all|no|socks|rsync)_proxy|npm_config_((https?_?-?)?proxy|noproxy))$/i.test(name);
}
