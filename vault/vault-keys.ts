/** The key hierarchy: master key → one key a purpose → one key a record. */
import { timingSafeEqual } from 'node:crypto';
import { type KeyDerivation, masterKey } from './key-source.ts';
import { type Purpose, purposeNumbers } from './purposes.ts';
import { corrupt, KEY_ID_BYTES, type SealedPart } from './sealed-file.ts';
import { openSodium, type Sodium } from './sodium.ts';
import type { KeySource } from './types.ts';

/** Where a record belongs. It opens nowhere else: not under another name, version, purpose, key or format. */
export interface RecordPlace {
  readonly purpose: Purpose;
  readonly name: string;
  readonly version: number;
}

export interface VaultKeys {
  readonly keyId: Buffer;
  /** Compares in constant time with the key id of a file. */
  opens(keyId: Buffer): boolean;
  seal(place: RecordPlace, plain: Uint8Array, context: SealContext): SealedPart;
  /** @throws VaultError `VAULT_FILE_CORRUPT` when the record does not belong to this place */
  open(place: RecordPlace, part: SealedPart, header: Buffer): Buffer;
  /** Overwrites every key; nothing opens afterwards. */
  wipe(): void;
}

export interface SealContext {
  /** The encoded header of the file: format version, derivation and key id. */
  readonly header: Buffer;
  /** 24 random bytes, never used twice. */
  readonly nonce: Buffer;
}

const KEY_CHECK = { number: 0, context: 'SPkeyid1' } as const;
const PURPOSE_CONTEXT = 'SPpurp_1';

/** All keys of a file from what the operator gives. @throws VaultError like `masterKey` */
export async function openVaultKeys(source: KeySource, derivation: KeyDerivation): Promise<VaultKeys> {
  const sodium = await openSodium();
  const master = await masterKey(source, derivation);
  try {
    return deriveVaultKeys(sodium, master);
  } finally {
    sodium.wipe(master);
  }
}

/** Derives all purpose keys; the master key can be wiped afterwards. */
export function deriveVaultKeys(sodium: Sodium, master: Buffer): VaultKeys {
  const keyId = sodium.deriveKey(master, KEY_CHECK.number, KEY_CHECK.context).subarray(0, KEY_ID_BYTES);
  const purposeKeys = Object.values(purposeNumbers).map(
    (number) => [number, sodium.deriveKey(master, number, PURPOSE_CONTEXT)] as const,
  );
  const keys: ReadonlyMap<number, Buffer> = new Map(purposeKeys);

  /** A key of its own for each record: a repeated nonce in two records would still not share a key stream. */
  function withRecordKey<T>(place: RecordPlace, use: (key: Buffer) => T): T {
    const purposeKey = keys.get(purposeNumbers[place.purpose]);
    if (purposeKey === undefined) throw corrupt('a record has an unknown purpose');
    const key = sodium.keyedHash(purposeKey, encodePlace(place));
    try {
      return use(key);
    } finally {
      sodium.wipe(key);
    }
  }

  return {
    keyId,
    opens: (other) => timingSafeEqual(keyId, other),
    seal(place, plain, { header, nonce }) {
      const sealed = withRecordKey(place, (key) => sodium.seal(key, nonce, plain, authenticated(place, header)));
      return { nonce, sealed };
    },
    open(place, part, header) {
      const plain = withRecordKey(place, (key) =>
        sodium.open(key, part.nonce, part.sealed, authenticated(place, header)),
      );
      if (plain === undefined)
        throw corrupt(`the record of ${place.purpose} version ${place.version} is not authentic`);
      return plain;
    },
    wipe() {
      for (const key of keys.values()) sodium.wipe(key);
    },
  };
}

function authenticated(place: RecordPlace, header: Buffer): Buffer {
  return Buffer.concat([header, encodePlace(place)]);
}

/** Each field with its length in front: no two places have the same bytes. */
function encodePlace(place: RecordPlace): Buffer {
  const fields = [place.purpose, place.name, String(place.version)].map((text) => Buffer.from(text, 'utf8'));
  return Buffer.concat(
    fields.flatMap((field) => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(field.length);
      return [length, field];
    }),
  );
}
