/** Ed25519 signatures over checkpoints (RFC 8032), with the message separated by domain. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { GatewayError } from '../errors.ts';
import { canonicalJson } from './canonical.ts';

/** Holds the checkpoint key. The log asks for a signature and never sees the key. */
export interface AuditSigner {
  readonly keyId: string;
  /** SPKI PEM. */
  readonly publicKeyPem: string;
  sign(bytes: Uint8Array): Buffer;
}

/** What a checkpoint vouches for. */
export interface CheckpointClaim {
  readonly node: string;
  readonly fromSeq: number;
  /** The last record below the checkpoint; `hash` is its hash. */
  readonly toSeq: number;
  readonly hash: string;
  /** The log was closed in order right after this checkpoint. */
  readonly closing: boolean;
}

/**
 * A signer over an Ed25519 private key (PKCS #8 PEM or a key object).
 * @throws GatewayError `GATEWAY_AUDIT_FAILED` when the key is not Ed25519
 */
export function createAuditSigner(privateKey: string | KeyObject): AuditSigner {
  const key = readKey(() => (typeof privateKey === 'string' ? createPrivateKey(privateKey) : privateKey));
  const publicKey = createPublicKey(key);
  const publicKeyPem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  return { keyId: auditKeyId(publicKey), publicKeyPem, sign: (bytes) => sign(null, bytes, key) };
}

/** A new key as PKCS #8 PEM. Whoever calls seals it; this folder keeps no private key on disk. */
export function generateAuditKey(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** The first 128 bits of SHA-256 over the SPKI form, hex. */
export function auditKeyId(publicKey: KeyObject): string {
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(spki).digest('hex').slice(0, 32);
}

/** The public keys of a PEM text, which may hold several after a change of key. @throws GatewayError `GATEWAY_AUDIT_FAILED` */
export function readPublicKeys(pem: string): KeyObject[] {
  const blocks = pem.slice(0, maxPemChars).match(pemBlock) ?? [];
  if (blocks.length === 0) throw new GatewayError('GATEWAY_AUDIT_FAILED', 'Cannot read audit public key: no PEM block');
  return blocks.map((block) => readKey(() => createPublicKey(block)));
}

/** The label keeps a signature from being taken for one over anything else that this key might ever sign. */
export function checkpointMessage(claim: CheckpointClaim): Buffer {
  const { node, fromSeq, toSeq, hash, closing } = claim;
  return Buffer.from(`sallyport audit checkpoint v1\0${canonicalJson({ node, fromSeq, toSeq, hash, closing })}`);
}

/** Whether any of the keys signed the claim. A malformed signature is a wrong one. */
export function verifyCheckpoint(claim: CheckpointClaim, signature: string, keys: readonly KeyObject[]): boolean {
  const bytes = Buffer.from(signature, 'base64');
  // Strict form: Buffer ignores stray characters, and a second spelling of a signature would be malleable.
  if (bytes.length !== 64 || bytes.toString('base64') !== signature) return false;
  const message = checkpointMessage(claim);
  return keys.some((key) => verify(null, message, key, bytes));
}

const maxPemChars = 64 * 1024;
const pemBlock = /-----BEGIN PUBLIC KEY-----[A-Za-z0-9+/=\s]{1,1024}-----END PUBLIC KEY-----/g;

function readKey(read: () => KeyObject): KeyObject {
  let key: KeyObject;
  try {
    key = read();
  } catch (cause) {
    throw new GatewayError('GATEWAY_AUDIT_FAILED', 'Cannot read audit key: not a PEM key', { cause });
  }
  if (key.asymmetricKeyType === 'ed25519') return key;
  throw new GatewayError(
    'GATEWAY_AUDIT_FAILED',
    `Cannot use audit key: ${key.asymmetricKeyType ?? 'secret'} instead of ed25519`,
  );
}
