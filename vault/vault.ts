/** The sealed file in use: secrets by name, versions kept, values opened only when asked for. */
import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { type Contents, MAX_RECORDS, readContents, type StoredRecord, sealContents } from './contents.ts';
import { VaultError } from './errors.ts';
import { DEFAULT_SCRYPT_COST, newDerivation, SALT_BYTES, type ScryptCost } from './key-source.ts';
import { lockedCommit } from './locked-commit.ts';
import type { Purpose, SealedPurpose } from './purposes.ts';
import { corrupt, encodeHeader, MAX_FILE_BYTES, parseSealedFile, type SealedHeader } from './sealed-file.ts';
import { checkSecretName } from './secret-name.ts';
import { checkStoredValue } from './secret-value.ts';
import { bySlot, infoOf, isIn, isSecret, missing, newest, type Slot, slotKey, withVersion } from './slots.ts';
import { NONCE_BYTES } from './sodium.ts';
import { makeDirectory, readStoredFile, realPath, stampOf } from './stored-file.ts';
import type { KeySource, SecretInfo } from './types.ts';
import { openVaultKeys, type VaultKeys } from './vault-keys.ts';

export interface VaultOptions {
  /** Path of the sealed file; its lock and temporary files stand beside it. */
  readonly file: string;
  readonly key: KeySource;
  /** Milliseconds since 1970; default `Date.now`. */
  readonly now?: () => number;
  /** Nonces and salts; default the system's. For format vectors only: a repeated nonce breaks the seal. */
  readonly random?: (sizeBytes: number) => Buffer;
  /** Only for a new passphrase file; default 128 MiB. */
  readonly scryptCost?: ScryptCost;
}

/** Versions kept of one secret, the newest included: enough to go back over a bad rotation. */
export const MAX_VERSIONS = 10;
const MAX_ACTOR_CHARS = 128;

/** Invariant: only sealed bytes, names and dates are kept; each value is opened for one call and belongs to its caller. */
export class Vault {
  readonly #path: string;
  readonly #header: SealedHeader;
  readonly #keys: VaultKeys;
  readonly #now: () => number;
  readonly #random: (sizeBytes: number) => Buffer;
  #contents: Contents;
  /** Records of `#contents` by purpose and name. */
  #slots: ReadonlyMap<string, readonly StoredRecord[]>;
  /** Identity of the file that `#contents` came from. */
  #stamp: string;
  /** Writes of this object one after the other; the lock file orders them with those of others. */
  #writes: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  private constructor(options: VaultOptions, path: string, open: { header: SealedHeader; keys: VaultKeys }) {
    const { contents, stamp } = readContents(path, open.keys);
    this.#path = path;
    this.#header = open.header;
    this.#keys = open.keys;
    this.#contents = contents;
    this.#slots = bySlot(contents.records);
    this.#stamp = stamp;
    this.#now = options.now ?? Date.now;
    this.#random = options.random ?? randomBytes;
  }

  /**
   * Makes a new, empty sealed file (and its directory, mode 0700).
   * @throws VaultError `VAULT_FILE_EXISTS`, `VAULT_WRITE_FAILED`, `VAULT_KEY_MALFORMED`, `VAULT_KEY_EXPOSED`, `VAULT_SOURCE_UNAVAILABLE`
   */
  static async create(options: VaultOptions): Promise<Vault> {
    const random = options.random ?? randomBytes;
    const path = resolve(options.file);
    const cost = options.scryptCost ?? DEFAULT_SCRYPT_COST;
    const derivation = newDerivation(options.key.kind, cost, () => random(SALT_BYTES));
    const keys = await openVaultKeys(options.key, derivation);
    try {
      const header = { derivation, keyId: keys.keyId };
      const contents = { generation: 1, records: [] };
      makeDirectory(path);
      await lockedCommit(path, { mustBeNew: true, change: () => sealContents(contents, header, keys, random) });
      return new Vault(options, path, { header, keys });
    } catch (error) {
      keys.wipe();
      throw error;
    }
  }

  /**
   * Opens an existing sealed file and checks all of it.
   * @throws VaultError `VAULT_FILE_MISSING`, `VAULT_FILE_CORRUPT`, `VAULT_KEY_WRONG`, `VAULT_KEY_MALFORMED`, `VAULT_KEY_EXPOSED`, `VAULT_SOURCE_UNAVAILABLE`
   */
  static async open(options: VaultOptions): Promise<Vault> {
    const path = realPath(options.file);
    const { header } = parseSealedFile(readStoredFile(path).bytes);
    const keys = await openVaultKeys(options.key, header.derivation);
    try {
      return new Vault(options, path, { header, keys });
    } catch (error) {
      keys.wipe();
      throw error;
    }
  }

  /**
   * Adds a version of a secret; the oldest beyond {@link MAX_VERSIONS} goes. The value is copied, the caller may wipe it.
   * @param actor who did it, for `info`; cut to 128 characters
   * @throws VaultError `VAULT_NAME_MALFORMED`, `VAULT_SECRET_MALFORMED`, `VAULT_WRITE_FAILED`, `VAULT_CLOSED`, and as {@link open}
   */
  async set(name: string, value: Buffer, actor?: string): Promise<SecretInfo> {
    checkSecretName(name);
    await this.#put({ purpose: 'secrets', name, keep: MAX_VERSIONS }, value, actor);
    return this.info(name);
  }

  /** A copy of the newest version. @throws VaultError `VAULT_SECRET_MISSING`, `VAULT_CLOSED`, and as {@link open} */
  get(name: string): Buffer {
    return this.#openRecord(newest(this.#find('secrets', name)), name);
  }

  /** A copy of one version. @throws VaultError as {@link get} */
  getVersion(name: string, version: number): Buffer {
    const record = this.#find('secrets', name).find((candidate) => candidate.version === version);
    return this.#openRecord(record, `${name}@${version}`);
  }

  /** Every secret by name, without values. */
  list(): SecretInfo[] {
    this.#refresh();
    const names = new Set(this.#contents.records.filter(isSecret).map((record) => record.name));
    return [...names].sort().map((name) => infoOf(this.#find('secrets', name), name));
  }

  /** One secret without its value. @throws VaultError `VAULT_SECRET_MISSING` */
  info(name: string): SecretInfo {
    return infoOf(this.#find('secrets', name), name);
  }

  /** Removes a secret with all its versions. @throws VaultError `VAULT_SECRET_MISSING`, `VAULT_WRITE_FAILED` */
  async remove(name: string): Promise<void> {
    checkSecretName(name);
    await this.#change((records) => {
      const kept = records.filter((record) => !(isSecret(record) && record.name === name));
      if (kept.length === records.length) throw missing(name);
      return kept;
    });
  }

  /** Keeps bytes of the gateway itself under a purpose of their own; a value there before is replaced. Not among the secrets. */
  async seal(purpose: SealedPurpose, name: string, bytes: Buffer): Promise<void> {
    checkSecretName(name);
    await this.#put({ purpose, name, keep: 1 }, bytes, undefined);
  }

  /**
   * A copy of what is sealed there; if nothing is, `make` is called and its bytes are sealed first.
   * Of several processes that start at once one makes the bytes and all get the same.
   */
  async obtain(purpose: SealedPurpose, name: string, make: () => Buffer): Promise<Buffer> {
    checkSecretName(name);
    const slot = { purpose, name, keep: 1 };
    if (this.#find(purpose, name).length > 0) return this.unseal(purpose, name);
    await this.#change((records) => {
      if (records.some((record) => isIn(slot, record))) return undefined;
      const value = make();
      checkStoredValue(name, value);
      try {
        return withVersion(records, slot, this.#sealRecord(records, slot, value, undefined));
      } finally {
        value.fill(0);
      }
    });
    return this.unseal(purpose, name);
  }

  /** A copy of what {@link seal} kept. @throws VaultError `VAULT_SECRET_MISSING` */
  unseal(purpose: SealedPurpose, name: string): Buffer {
    return this.#openRecord(newest(this.#find(purpose, name)), name);
  }

  /** Wipes the keys; every later call fails. May be called twice. */
  close(): void {
    this.#isClosed = true;
    this.#keys.wipe();
  }

  #find(purpose: Purpose, name: string): readonly StoredRecord[] {
    this.#refresh();
    return this.#slots.get(slotKey(purpose, name)) ?? [];
  }

  #openRecord(record: StoredRecord | undefined, label: string): Buffer {
    if (record === undefined) throw missing(label);
    return this.#keys.open(record, record.part, encodeHeader(this.#header));
  }

  /** Another process may have written: what is served is always what the file says. */
  #refresh(): void {
    this.#checkOpen();
    if (stampOf(this.#path) !== this.#stamp) this.#reload();
  }

  #reload(): void {
    const { contents, stamp } = readContents(this.#path, this.#keys);
    if (contents.generation < this.#contents.generation) {
      throw corrupt('it is an older copy than this process has read; restart if that was meant');
    }
    this.#contents = contents;
    this.#slots = bySlot(contents.records);
    this.#stamp = stamp;
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new VaultError('VAULT_CLOSED', 'Cannot use the sealed file: it is closed');
  }

  async #put(slot: Slot, value: Buffer, actor: string | undefined): Promise<void> {
    checkStoredValue(slot.name, value);
    const copy = Buffer.from(value);
    try {
      await this.#change((records) => withVersion(records, slot, this.#sealRecord(records, slot, copy, actor)));
    } finally {
      copy.fill(0);
    }
  }

  #sealRecord(records: readonly StoredRecord[], slot: Slot, value: Buffer, actor: string | undefined): StoredRecord {
    const last = newest(records.filter((record) => isIn(slot, record)));
    const place = { purpose: slot.purpose, name: slot.name, version: (last?.version ?? 0) + 1 };
    const context = { header: encodeHeader(this.#header), nonce: this.#random(NONCE_BYTES) };
    const createdAt = new Date(this.#now()).toISOString();
    return {
      ...place,
      part: this.#keys.seal(place, value, context),
      createdAt,
      firstCreatedAt: last?.firstCreatedAt ?? createdAt,
      sizeBytes: value.length,
      actor: actor?.slice(0, MAX_ACTOR_CHARS) ?? null,
    };
  }

  /** Reads the newest state under the lock, edits it, writes it whole; an edit that gives undefined writes nothing. */
  #change(edit: (records: readonly StoredRecord[]) => readonly StoredRecord[] | undefined): Promise<void> {
    this.#checkOpen();
    const write = this.#writes.then(() =>
      lockedCommit(this.#path, {
        mustBeNew: false,
        change: () => {
          this.#checkOpen();
          this.#reload();
          const records = edit(this.#contents.records);
          return records === undefined ? undefined : this.#sealAll(records);
        },
      }),
    );
    // The next write starts when this one ended, however it ended; its failure is this caller's alone.
    this.#writes = write.catch(() => undefined);
    return write;
  }

  #sealAll(records: readonly StoredRecord[]): Buffer {
    if (records.length > MAX_RECORDS) throw full(`more than ${MAX_RECORDS} versions`);
    const contents = { generation: this.#contents.generation + 1, records };
    const bytes = sealContents(contents, this.#header, this.#keys, this.#random);
    if (bytes.length > MAX_FILE_BYTES) throw full(`more than ${MAX_FILE_BYTES} bytes`);
    return bytes;
  }
}

function full(state: string): VaultError {
  return new VaultError('VAULT_WRITE_FAILED', `Cannot write the sealed file: it would hold ${state}`);
}
