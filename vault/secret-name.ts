/** Names of secrets: what a reference, a command line and a policy file may say. */
import { VaultError } from './errors.ts';

/** `/` groups names; nothing here is ever used as a path. */
const SECRET_NAME = /^[a-zA-Z0-9._/-]{1,128}$/;

export function isSecretName(text: string): boolean {
  return SECRET_NAME.test(text) && !text.includes('..');
}

/**
 * Refuses what is not a name; the text itself is not repeated, as it may be a value given in the wrong place.
 * @throws VaultError `VAULT_NAME_MALFORMED`
 */
export function checkSecretName(text: string): void {
  if (isSecretName(text)) return;
  throw new VaultError(
    'VAULT_NAME_MALFORMED',
    'Cannot use this secret name: it needs 1..128 characters of a-z A-Z 0-9 . _ / - without ".."',
  );
}
