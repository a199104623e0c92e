/** From a key source to the 32 bytes that everything in a sealed file hangs on. */
import { randomBytes, scrypt } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { VaultError } from './errors.ts';
import { KEY_BYTES } from './sodium.ts';
import type { KeySource } from './types.ts';

/** How the master key is made from what the operator gives; stands in the sealed file's header. */
export type KeyDerivation =
  | { readonly kind: 'file' }
  | { readonly kind: 'scrypt'; readonly cost: ScryptCost; readonly salt: Buffer };

/** RFC 7914: N = 2^log2N, block size r, parallelism p. */
export interface ScryptCost {
  readonly log2N: number;
  readonly r: number;
  readonly p: number;
}

export const SALT_BYTES = 16;
/** 128 MiB and some tenths of a second: a passphrase is typed once a start. */
export const DEFAULT_SCRYPT_COST: ScryptCost = { log2N: 17, r: 8, p: 1 };
/** Below 16 MiB guessing is cheap; a header asking for less was not written by us. */
const MIN_LOG2_N = 14;
const MAX_LOG2_N = 20;
const MAX_R = 16;
const MAX_P = 4;
/** The header is read before anything proves who wrote it: it may not make us allocate without limit. */
const MAX_SCRYPT_MEMORY = 512 * 1024 * 1024;
const SCRYPT_SLACK = 1024 * 1024;
const MIN_PASSPHRASE_CHARS = 8;
const MAX_PASSPHRASE_BYTES = 1_024;
/** 64 hex digits or 44 characters of base64, with room for line ends. */
const MAX_KEY_FILE_BYTES = 128;
/** Anything that group or others may do with the file. */
const WIDER_THAN_OWNER = 0o077;

/**
 * How a new sealed file gets its master key from this kind of source.
 * @throws VaultError `VAULT_KEY_MALFORMED` when the cost is out of bounds
 */
export function newDerivation(kind: KeySource['kind'], cost: ScryptCost, salt: () => Buffer): KeyDerivation {
  if (kind === 'file') return { kind };
  if (isScryptCostInBounds(cost)) return { kind: 'scrypt', cost, salt: salt() };
  throw new VaultError('VAULT_KEY_MALFORMED', 'Cannot create the sealed file: the scrypt cost is out of bounds');
}

export function isScryptCostInBounds(cost: ScryptCost): boolean {
  const { log2N, r, p } = cost;
  if (log2N < MIN_LOG2_N || log2N > MAX_LOG2_N || r < 1 || r > MAX_R || p < 1 || p > MAX_P) return false;
  return 128 * r * 2 ** log2N <= MAX_SCRYPT_MEMORY;
}

/**
 * The master key; the caller wipes it.
 * @throws VaultError `VAULT_KEY_MALFORMED`, `VAULT_KEY_EXPOSED`, `VAULT_KEY_WRONG` (the other kind of key), `VAULT_SOURCE_UNAVAILABLE`
 */
export async function masterKey(source: KeySource, derivation: KeyDerivation): Promise<Buffer> {
  if (source.kind === 'file') {
    if (derivation.kind === 'file') return readKeyFile(source.path);
    throw new VaultError('VAULT_KEY_WRONG', 'Cannot open the sealed file: it wants a passphrase, not a key file');
  }
  if (derivation.kind === 'scrypt') return derive(await askPassphrase(source.passphrase), derivation);
  throw new VaultError('VAULT_KEY_WRONG', 'Cannot open the sealed file: it wants its key file, not a passphrase');
}

/**
 * Writes a new random key, base64, mode 0600; never over an existing file.
 * @throws VaultError `VAULT_FILE_EXISTS`, `VAULT_WRITE_FAILED`
 */
export async function createKeyFile(path: string): Promise<void> {
  const key = randomBytes(KEY_BYTES);
  let handle: FileHandle | undefined;
  try {
    handle = await open(path, 'wx', 0o600);
    await handle.writeFile(`${key.toString('base64')}\n`);
    await handle.sync();
  } catch (cause) {
    const exists = cause instanceof Error && 'code' in cause && cause.code === 'EEXIST';
    const code = exists ? 'VAULT_FILE_EXISTS' : 'VAULT_WRITE_FAILED';
    const state = exists ? 'the file is there already' : 'writing failed';
    throw new VaultError(code, `Cannot create key file ${path}: ${state}`, { cause });
  } finally {
    key.fill(0);
    await handle?.close();
  }
}

async function readKeyFile(path: string): Promise<Buffer> {
  let handle: FileHandle | undefined;
  const text = Buffer.alloc(MAX_KEY_FILE_BYTES + 1);
  try {
    handle = await open(path, 'r');
    await checkExposure(path, handle);
    const { bytesRead } = await handle.read(text, 0, text.length, 0);
    return parseKey(path, text.toString('latin1', 0, bytesRead));
  } catch (cause) {
    if (cause instanceof VaultError) throw cause;
    throw new VaultError('VAULT_SOURCE_UNAVAILABLE', `Cannot read key file ${path}: it cannot be opened`, { cause });
  } finally {
    text.fill(0);
    await handle?.close();
  }
}

/** On the open handle, so that the file checked is the file read. */
async function checkExposure(path: string, handle: FileHandle): Promise<void> {
  const stat = await handle.stat();
  if (!stat.isFile()) throw new VaultError('VAULT_KEY_MALFORMED', `Cannot read key file ${path}: not a plain file`);
  // Windows has no such modes and no geteuid: its access lists are the operator's business.
  const user = process.geteuid?.();
  if (user === undefined) return;
  const mode = (stat.mode & 0o777).toString(8);
  if ((stat.mode & WIDER_THAN_OWNER) !== 0) {
    throw new VaultError('VAULT_KEY_EXPOSED', `Cannot use key file ${path}: its mode is 0${mode}, it must be 0600`);
  }
  if (stat.uid !== user) {
    throw new VaultError('VAULT_KEY_EXPOSED', `Cannot use key file ${path}: it belongs to user ${stat.uid}`);
  }
}

function parseKey(path: string, text: string): Buffer {
  const trimmed = text.trim();
  const encoding = /^[0-9a-fA-F]{64}$/.test(trimmed) ? 'hex' : 'base64';
  const key = Buffer.from(trimmed, encoding);
  // Node skips characters that are not base64: only a text that comes out the same was one.
  const isCanonical = encoding === 'hex' || key.toString('base64') === trimmed;
  if (key.length === KEY_BYTES && isCanonical) return key;
  throw new VaultError('VAULT_KEY_MALFORMED', `Cannot use key file ${path}: not 32 bytes as base64 or hex`);
}

async function askPassphrase(passphrase: () => Promise<string>): Promise<Buffer> {
  let text: string;
  try {
    text = await passphrase();
  } catch (cause) {
    throw new VaultError('VAULT_SOURCE_UNAVAILABLE', 'Cannot read the passphrase: its source failed', { cause });
  }
  // One keyboard types "é" as one code point, another as two.
  const bytes = Buffer.from(text.normalize('NFC'), 'utf8');
  if (text.length >= MIN_PASSPHRASE_CHARS && bytes.length <= MAX_PASSPHRASE_BYTES) return bytes;
  const bounds = `${MIN_PASSPHRASE_CHARS} characters to ${MAX_PASSPHRASE_BYTES} bytes`;
  throw new VaultError('VAULT_KEY_MALFORMED', `Cannot use the passphrase: it needs ${bounds}`);
}

function derive(passphrase: Buffer, derivation: KeyDerivation & { kind: 'scrypt' }): Promise<Buffer> {
  const { cost, salt } = derivation;
  const N = 2 ** cost.log2N;
  const maxmem = 128 * cost.r * (N + cost.p) + SCRYPT_SLACK;
  return new Promise((resolve, reject) => {
    scrypt(passphrase, salt, KEY_BYTES, { N, r: cost.r, p: cost.p, maxmem }, (cause, key) => {
      passphrase.fill(0);
      if (cause === null) resolve(key);
      else reject(new VaultError('VAULT_SOURCE_UNAVAILABLE', 'Cannot derive the key: scrypt failed', { cause }));
    });
  });
}
