/** What a secret value may be, at rest and in a header. */
import { VaultError } from './errors.ts';

/** Room for a key with its certificate chain; anything larger is a document, not a secret. */
export const MAX_VALUE_BYTES = 65_536;

/** @throws VaultError `VAULT_SECRET_MALFORMED` unless 1..{@link MAX_VALUE_BYTES} bytes */
export function checkStoredValue(name: string, value: Uint8Array): void {
  if (value.length >= 1 && value.length <= MAX_VALUE_BYTES) return;
  const state = value.length === 0 ? 'the value is empty' : `the value is longer than ${MAX_VALUE_BYTES} bytes`;
  throw new VaultError('VAULT_SECRET_MALFORMED', `Cannot store ${name}: ${state}`);
}

/**
 * Refuses a value that would end a header line or read differently on the other side: CR and LF split the message (RFC 9112
 * section 11.1), NUL and other controls are cut or folded by servers, bytes above 0x7e have no agreed meaning, outer spaces are trimmed.
 * @throws VaultError `VAULT_SECRET_MALFORMED`
 */
export function checkHeaderValue(name: string, value: Uint8Array): void {
  const isOuterSpace = value[0] === 0x20 || value.at(-1) === 0x20;
  if (value.length > 0 && !isOuterSpace && value.every((byte) => byte >= 0x20 && byte <= 0x7e)) return;
  throw malformed(name, value.length === 0 ? 'it is empty' : 'it holds bytes that no header value may hold');
}

/**
 * A password is base64 on the wire, so it may be UTF-8; controls are refused all the same (RFC 7617 section 2).
 * @throws VaultError `VAULT_SECRET_MALFORMED`
 */
export function checkPassword(name: string, value: Uint8Array): void {
  if (value.length > 0 && value.every((byte) => byte >= 0x20 && byte !== 0x7f)) return;
  throw malformed(name, value.length === 0 ? 'it is empty' : 'it holds control characters');
}

function malformed(name: string, state: string): VaultError {
  return new VaultError('VAULT_SECRET_MALFORMED', `Cannot use the secret of credential ${name}: ${state}`);
}
