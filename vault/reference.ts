/** `vault:NAME[@VERSION]`, `env:NAME`, `file:PATH`: where a policy says that a secret is, parsed once. */
import { VaultError } from './errors.ts';
import { isSecretName } from './secret-name.ts';

export type Reference =
  /** `version` null = the newest. */
  | { readonly kind: 'vault'; readonly name: string; readonly version: number | null }
  | { readonly kind: 'env'; readonly name: string }
  /** As written; relative paths are resolved against the base directory of the resolver. */
  | { readonly kind: 'file'; readonly path: string };

/** PATH_MAX of Linux. */
const MAX_PATH_CHARS = 4_096;
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
/** Counting up once a second would take 30 years to get here. */
const VERSION = /^[1-9][0-9]{0,8}$/;

/**
 * Parses one reference. The text is never repeated in the error: it may be a literal value written by mistake.
 * @throws VaultError `VAULT_REFERENCE_MALFORMED`
 */
export function parseReference(text: string): Reference {
  const colon = text.indexOf(':');
  const rest = text.slice(colon + 1);
  switch (text.slice(0, Math.max(colon, 0))) {
    case 'vault':
      return parseVault(rest);
    case 'env':
      if (!ENV_NAME.test(rest)) throw malformed('the variable name is not [A-Za-z_][A-Za-z0-9_]*');
      return { kind: 'env', name: rest };
    case 'file':
      if (rest === '' || rest.length > MAX_PATH_CHARS || rest.includes('\0')) throw malformed('the path is not a path');
      return { kind: 'file', path: rest };
    default:
      throw malformed('it has to start with vault:, env: or file:');
  }
}

/** The canonical text of a reference: parsing it gives the same reference. */
export function formatReference(reference: Reference): string {
  switch (reference.kind) {
    case 'vault':
      return `vault:${reference.name}${reference.version === null ? '' : `@${reference.version}`}`;
    case 'env':
      return `env:${reference.name}`;
    case 'file':
      return `file:${reference.path}`;
    default: {
      const never: never = reference;
      return never;
    }
  }
}

function parseVault(text: string): Reference {
  const at = text.indexOf('@');
  const name = at < 0 ? text : text.slice(0, at);
  if (!isSecretName(name)) throw malformed('the secret name is not [a-zA-Z0-9._/-]{1,128}');
  if (at < 0) return { kind: 'vault', name, version: null };
  const version = text.slice(at + 1);
  if (!VERSION.test(version)) throw malformed('the version after @ is not a number from 1');
  return { kind: 'vault', name, version: Number(version) };
}

function malformed(why: string): VaultError {
  return new VaultError('VAULT_REFERENCE_MALFORMED', `Cannot read a secret reference: ${why}`);
}
