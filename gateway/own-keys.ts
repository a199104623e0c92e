/** Keys of the gateway's own: made at the first start, sealed in the vault ever after. */
import { randomBytes } from 'node:crypto';
import type { Vault } from '../vault/index.ts';
import { generateAuditKey } from './audit/index.ts';

/** HMAC-SHA-256 gains nothing from more. */
const PLACEHOLDER_KEY_BYTES = 32;

/** Signs checkpoints; PKCS #8 PEM. */
export async function auditKey(vault: Vault): Promise<string> {
  return (await vault.obtain('audit-signing', 'current', () => Buffer.from(generateAuditKey()))).toString();
}

/** Makes the stand-ins of credentials. */
export function placeholderKey(vault: Vault): Promise<Buffer> {
  return vault.obtain('placeholders', 'current', () => randomBytes(PLACEHOLDER_KEY_BYTES));
}
