/** Stand-ins that a sandbox holds in place of its credentials. */
import { createHmac } from 'node:crypto';
import { VaultError } from './errors.ts';

/** Fixed length and alphabet, so that no placeholder is a prefix of another and all are found by one scan. */
export const PLACEHOLDER_PREFIX = 'sptph_';
const DIGEST_HEX_CHARS = 40;
export const PLACEHOLDER_LENGTH = PLACEHOLDER_PREFIX.length + DIGEST_HEX_CHARS;
/** One whole placeholder. */
export const PLACEHOLDER_PATTERN = /^sptph_[0-9a-f]{40}$/;
/** HMAC-SHA-256 gains nothing from less than its own strength. */
const MIN_KEY_BYTES = 32;

export interface Placeholders {
  /** The stand-in of one credential in one sandbox: the same for the life of the key, useless in any other sandbox. */
  issue(sandboxId: string, credentialName: string): string;
}

/**
 * Placeholders under a key of at least 32 bytes; the key is copied.
 * @throws VaultError `VAULT_KEY_MALFORMED`
 */
export function createPlaceholders(key: Buffer): Placeholders {
  if (key.length < MIN_KEY_BYTES) {
    throw new VaultError('VAULT_KEY_MALFORMED', 'Cannot issue placeholders: the key has less than 32 bytes');
  }
  const ownKey = Buffer.from(key);
  return {
    issue(sandboxId, credentialName) {
      // JSON keeps the two names apart: ("a", "bc") and ("ab", "c") are different messages.
      const message = JSON.stringify(['placeholder', sandboxId, credentialName]);
      const digest = createHmac('sha256', ownKey).update(message, 'utf8').digest('hex');
      return PLACEHOLDER_PREFIX + digest.slice(0, DIGEST_HEX_CHARS);
    },
  };
}
