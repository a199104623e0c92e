/** The bytes of a sealed file, format 1: layout and checksum. Knows no key; see README.md for the picture. */
import { createHash } from 'node:crypto';
import { VaultError } from './errors.ts';
import { isScryptCostInBounds, type KeyDerivation, SALT_BYTES } from './key-source.ts';
import { NONCE_BYTES, TAG_BYTES } from './sodium.ts';

/** A nonce and what was sealed under it. */
export interface SealedPart {
  readonly nonce: Buffer;
  readonly sealed: Buffer;
}

export interface SealedHeader {
  readonly derivation: KeyDerivation;
  /** Says which key opens the file: a one-way function of the master key. */
  readonly keyId: Buffer;
}

export interface SealedFile {
  readonly header: SealedHeader;
  readonly manifest: SealedPart;
  readonly records: readonly SealedPart[];
}

export const FORMAT_VERSION = 1;
export const KEY_ID_BYTES = 16;
/** Read whole into memory and written whole at each change: a store of secrets, not of documents. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024;

const MAGIC = Buffer.from('SPVAULT\n', 'latin1');
const HEADER_BYTES = 48;
const DERIVATIONS = ['file', 'scrypt'] as const;
const CHECKSUM_BYTES = 32;
const LENGTH_BYTES = 4;

/** The header as it stands in the file; every sealed part authenticates it. */
export function encodeHeader(header: SealedHeader): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES);
  MAGIC.copy(bytes);
  bytes[8] = FORMAT_VERSION;
  bytes[9] = DERIVATIONS.indexOf(header.derivation.kind);
  if (header.derivation.kind === 'scrypt') {
    const { cost, salt } = header.derivation;
    bytes.set([cost.log2N, cost.r, cost.p], 10);
    bytes.set(salt, 16);
  }
  bytes.set(header.keyId, 16 + SALT_BYTES);
  return bytes;
}

export function encodeSealedFile(file: SealedFile): Buffer {
  const body = Buffer.concat([encodeHeader(file.header), ...[file.manifest, ...file.records].flatMap(encodePart)]);
  return Buffer.concat([body, checksum(body)]);
}

/**
 * Reads the layout back. The checksum only tells damage from a wrong key; what proves who wrote the file is inside the parts.
 * @throws VaultError `VAULT_FILE_CORRUPT`
 */
export function parseSealedFile(bytes: Buffer): SealedFile {
  if (bytes.length > MAX_FILE_BYTES) throw corrupt(`it is larger than ${MAX_FILE_BYTES} bytes`);
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) throw corrupt('it is not a sealed file');
  if (bytes[8] !== FORMAT_VERSION) throw corrupt(`its format is ${bytes[8] ?? 'cut off'}, this program reads 1`);
  const end = bytes.length - CHECKSUM_BYTES;
  if (end < HEADER_BYTES) throw corrupt('it is cut off');
  const body = bytes.subarray(0, end);
  if (!checksum(body).equals(bytes.subarray(end))) throw corrupt('its checksum does not hold');
  const [manifest, ...records] = parseParts(body);
  if (manifest === undefined) throw corrupt('it has no manifest');
  return { header: parseHeader(body), manifest, records };
}

function parseHeader(body: Buffer): SealedHeader {
  const salt = body.subarray(16, 16 + SALT_BYTES);
  const keyId = Buffer.from(body.subarray(16 + SALT_BYTES, HEADER_BYTES));
  const [log2N = 0, r = 0, p = 0] = body.subarray(10, 13);
  const header: SealedHeader = { derivation: parseDerivation(body[9], { log2N, r, p }, salt), keyId };
  // One header, one form: nothing may hide in bytes that this derivation leaves unused.
  if (!encodeHeader(header).equals(body.subarray(0, HEADER_BYTES)))
    throw corrupt('its header is not in canonical form');
  return header;
}

function parseDerivation(code: number | undefined, cost: { log2N: number; r: number; p: number }, salt: Buffer) {
  const kind = DERIVATIONS[code ?? -1];
  if (kind === undefined) throw corrupt('its key derivation is unknown');
  if (kind === 'file') return { kind } as const;
  if (!isScryptCostInBounds(cost)) throw corrupt('its scrypt cost is out of bounds');
  return { kind, cost, salt: Buffer.from(salt) } as const;
}

function parseParts(body: Buffer): SealedPart[] {
  const parts: SealedPart[] = [];
  let at = HEADER_BYTES;
  while (at < body.length) {
    const start = at + NONCE_BYTES + LENGTH_BYTES;
    if (start > body.length) throw corrupt('a part is cut off');
    const length = body.readUInt32BE(at + NONCE_BYTES);
    if (length < TAG_BYTES || start + length > body.length) throw corrupt('a part has an impossible length');
    parts.push({ nonce: body.subarray(at, at + NONCE_BYTES), sealed: body.subarray(start, start + length) });
    at = start + length;
  }
  return parts;
}

function encodePart(part: SealedPart): Buffer[] {
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(part.sealed.length);
  return [part.nonce, length, part.sealed];
}

function checksum(body: Buffer): Buffer {
  return createHash('sha256').update(body).digest();
}

/** The one error for every kind of damage; `state` never holds bytes of the file. */
export function corrupt(state: string): VaultError {
  return new VaultError('VAULT_FILE_CORRUPT', `Cannot read the sealed file: ${state}`);
}
