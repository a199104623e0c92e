/** What a command needs in its environment to reach the world through the gateway, and the CA bundle it trusts. */
import { existsSync, readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';

/** Where Debian, Ubuntu, Alpine, Fedora and openSUSE keep their bundle. */
const SYSTEM_BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
];

const CA_VARIABLES = [
  'SSL_CERT_FILE',
  'NODE_EXTRA_CA_CERTS',
  'REQUESTS_CA_BUNDLE',
  'CURL_CA_BUNDLE',
  'GIT_SSL_CAINFO',
  'PIP_CERT',
  'CARGO_HTTP_CAINFO',
  'AWS_CA_BUNDLE',
  'DENO_CERT',
];

const PROXY_VARIABLES = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'];

/** The system's CAs (Node's when there is no bundle), then ours. */
export function caBundle(ownPem: string): string {
  const system = SYSTEM_BUNDLES.find((path) => existsSync(path));
  const others = system === undefined ? rootCertificates.join('\n') : readFileSync(system, 'utf8');
  return `${others.trimEnd()}\n${ownPem}`;
}

export function sandboxEnvironment(
  proxyUrl: string,
  bundlePath: string,
  placeholders: ReadonlyMap<string, string>,
): Record<string, string> {
  const environment: Record<string, string> = { NO_PROXY: '', no_proxy: '', NODE_USE_ENV_PROXY: '1' };
  for (const name of PROXY_VARIABLES) {
    environment[name] = proxyUrl;
    environment[name.toLowerCase()] = proxyUrl;
  }
  for (const name of CA_VARIABLES) environment[name] = bundlePath;
  for (const [credential, placeholder] of placeholders) environment[placeholderVariable(credential)] = placeholder;
  return environment;
}

/** `github-token` → `SALLYPORT_PLACEHOLDER_GITHUB_TOKEN`. */
export function placeholderVariable(credential: string): string {
  return `SALLYPORT_PLACEHOLDER_${credential.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`;
}
