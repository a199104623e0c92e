/** Fetches the value that a reference stands for. */
import { createHmac, randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { VaultError } from './errors.ts';
import { formatReference, parseReference, type Reference } from './reference.ts';
import { MAX_VALUE_BYTES } from './secret-value.ts';

/** A value as found; the caller owns the bytes and may wipe them. */
export interface ResolvedSecret {
  readonly value: Buffer;
  /** The sealed file's version, or for `env:` and `file:` a count from 1 that grows with each changed value. */
  readonly version: string;
}

/** What the resolver needs of an open sealed file. */
export interface SecretStore {
  get(name: string): Buffer;
  getVersion(name: string, version: number): Buffer;
  info(name: string): { readonly version: number };
}

export interface ResolverOptions {
  /** Absent: `vault:` references fail with `VAULT_SOURCE_UNAVAILABLE`. */
  readonly vault?: SecretStore;
  /** Absolute directory that `file:` paths are relative to. */
  readonly baseDir: string;
  /** Default `process.env`, read anew each time. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export interface SecretResolver {
  /**
   * The value now. Files are read anew whenever their time, size or inode changed.
   * @throws VaultError `VAULT_REFERENCE_MALFORMED`, `VAULT_SOURCE_UNAVAILABLE`, `VAULT_SECRET_MISSING`, `VAULT_SECRET_MALFORMED`, `VAULT_CLOSED`
   */
  resolve(reference: string): Promise<ResolvedSecret>;
  /** Forgets what was read. The sealed file stays open: it belongs to the caller. */
  close(): void;
}

/** References seen in one process: those of all policies ever loaded. Full means refuse. */
export const MAX_REFERENCES = 8_192;

export function createResolver(options: ResolverOptions): SecretResolver {
  const counter = createVersionCounter();
  const files = new Map<string, CachedFile>();
  let isClosed = false;

  async function fetchValue(reference: Reference): Promise<ResolvedSecret> {
    switch (reference.kind) {
      case 'vault':
        return fromVault(options.vault, reference);
      case 'env':
        return counter.count(reference, fromEnv(options.env ?? process.env, reference.name));
      case 'file':
        return counter.count(reference, await fromFile(resolve(options.baseDir, reference.path), files));
      default: {
        const never: never = reference;
        return never;
      }
    }
  }

  return {
    async resolve(text) {
      if (isClosed) throw new VaultError('VAULT_CLOSED', 'Cannot resolve a secret reference: the resolver is closed');
      return fetchValue(parseReference(text));
    },
    close() {
      isClosed = true;
      for (const file of files.values()) file.value.fill(0);
      files.clear();
    },
  };
}

function fromVault(vault: SecretStore | undefined, reference: Reference & { kind: 'vault' }): ResolvedSecret {
  const { name, version } = reference;
  if (vault === undefined) {
    throw new VaultError('VAULT_SOURCE_UNAVAILABLE', `Cannot read vault:${name}: no sealed file is open`);
  }
  const wanted = version ?? vault.info(name).version;
  return { value: vault.getVersion(name, wanted), version: String(wanted) };
}

function fromEnv(env: Readonly<Record<string, string | undefined>>, name: string): Buffer {
  const text = env[name];
  if (text === undefined) throw new VaultError('VAULT_SECRET_MISSING', `Cannot read env:${name}: it is not set`);
  if (text === '') throw new VaultError('VAULT_SECRET_MALFORMED', `Cannot read env:${name}: it is empty`);
  if (text.length > MAX_VALUE_BYTES) throw tooLong(`env:${name}`);
  return Buffer.from(text, 'utf8');
}

interface CachedFile {
  readonly identity: string;
  readonly value: Buffer;
}

async function fromFile(path: string, cache: Map<string, CachedFile>): Promise<Buffer> {
  let handle: FileHandle | undefined;
  try {
    // O_NONBLOCK: opening a FIFO must not hang; what is not a plain file is refused below.
    handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    return await readCached(path, handle, cache);
  } catch (cause) {
    cache.delete(path);
    if (cause instanceof VaultError) throw cause;
    const isMissing = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
    const code = isMissing ? 'VAULT_SECRET_MISSING' : 'VAULT_SOURCE_UNAVAILABLE';
    throw new VaultError(code, `Cannot read file:${path}: ${isMissing ? 'it is missing' : 'it cannot be opened'}`, {
      cause,
    });
  } finally {
    await handle?.close();
  }
}

async function readCached(path: string, handle: FileHandle, cache: Map<string, CachedFile>): Promise<Buffer> {
  const stat = await handle.stat({ bigint: true });
  if (!stat.isFile()) throw new VaultError('VAULT_SOURCE_UNAVAILABLE', `Cannot read file:${path}: not a plain file`);
  const identity = `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
  const cached = cache.get(path);
  if (cached?.identity === identity) return Buffer.from(cached.value);
  const value = stripNewline(await readBounded(path, handle));
  if (value.length === 0) throw new VaultError('VAULT_SECRET_MALFORMED', `Cannot read file:${path}: it is empty`);
  // Beyond the bound a file is simply read each time.
  if (cache.has(path) || cache.size < MAX_REFERENCES) cache.set(path, { identity, value });
  return Buffer.from(value);
}

/** Reads at most one byte more than allowed: the size of a file that grows meanwhile is not to be believed. */
async function readBounded(path: string, handle: FileHandle): Promise<Buffer> {
  const room = Buffer.alloc(MAX_VALUE_BYTES + 3);
  let length = 0;
  while (length < room.length) {
    const { bytesRead } = await handle.read(room, length, room.length - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  const value = Buffer.from(room.subarray(0, length));
  room.fill(0);
  if (stripNewline(value).length > MAX_VALUE_BYTES) throw tooLong(`file:${path}`);
  return value;
}

/** One trailing newline is how editors and `echo` end a file; a second one is part of the value (and then refused in a header). */
function stripNewline(value: Buffer): Buffer {
  if (value.at(-1) !== 0x0a) return value;
  return value.subarray(0, value.at(-2) === 0x0d ? -2 : -1);
}

interface VersionCounter {
  count(reference: Reference, value: Buffer): ResolvedSecret;
}

/** Counts changes by a keyed digest: no value is kept to compare with. */
function createVersionCounter(): VersionCounter {
  const key = randomBytes(32);
  const seen = new Map<string, { digest: string; version: number }>();
  return {
    count(reference, value) {
      const id = formatReference(reference);
      const digest = createHmac('sha256', key).update(value).digest('base64');
      const last = seen.get(id);
      if (last?.digest === digest) return { value, version: String(last.version) };
      if (last === undefined && seen.size >= MAX_REFERENCES) {
        throw new VaultError('VAULT_SOURCE_UNAVAILABLE', `Cannot read ${id}: ${MAX_REFERENCES} references are in use`);
      }
      const version = (last?.version ?? 0) + 1;
      seen.set(id, { digest, version });
      return { value, version: String(version) };
    },
  };
}

function tooLong(source: string): VaultError {
  return new VaultError('VAULT_SECRET_MALFORMED', `Cannot read ${source}: longer than ${MAX_VALUE_BYTES} bytes`);
}
