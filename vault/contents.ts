/** What a sealed file holds, and how it is sealed and opened as a whole. */
import { createHash } from 'node:crypto';
import { VaultError } from './errors.ts';
import { isPurpose, type Purpose } from './purposes.ts';
import {
  corrupt,
  encodeHeader,
  encodeSealedFile,
  parseSealedFile,
  type SealedFile,
  type SealedHeader,
  type SealedPart,
} from './sealed-file.ts';
import { NONCE_BYTES } from './sodium.ts';
import { readStoredFile } from './stored-file.ts';
import type { RecordPlace, VaultKeys } from './vault-keys.ts';

/** One version of one secret, still sealed. */
export interface StoredRecord extends RecordPlace {
  readonly part: SealedPart;
  /** When this version was written, RFC 3339. */
  readonly createdAt: string;
  /** When the oldest version of this name was written, even if that version is gone. */
  readonly firstCreatedAt: string;
  readonly sizeBytes: number;
  readonly actor: string | null;
}

export interface Contents {
  /** Grows by one with each write: an older copy of the file shows itself. */
  readonly generation: number;
  readonly records: readonly StoredRecord[];
}

/** Secrets × kept versions of a large installation; the manifest is parsed at each open. */
export const MAX_RECORDS = 20_000;

const MANIFEST: RecordPlace = { purpose: 'manifest', name: '', version: 1 };

/** Seals a manifest over the records: none can be left out, doubled, reordered or replaced by an older one. */
export function sealContents(
  contents: Contents,
  header: SealedHeader,
  keys: VaultKeys,
  random: (size: number) => Buffer,
) {
  const entries = contents.records.map((record) => [
    record.purpose,
    record.name,
    record.version,
    record.createdAt,
    record.firstCreatedAt,
    record.sizeBytes,
    record.actor,
    digest(record.part),
  ]);
  const plain = Buffer.from(JSON.stringify([contents.generation, entries]), 'utf8');
  const manifest = keys.seal(MANIFEST, plain, { header: encodeHeader(header), nonce: random(NONCE_BYTES) });
  return encodeSealedFile({ header, manifest, records: contents.records.map((record) => record.part) });
}

/**
 * Opens the manifest and checks every record against it. Values stay sealed.
 * @throws VaultError `VAULT_FILE_CORRUPT`
 */
export function openContents(file: SealedFile, keys: VaultKeys): Contents {
  const plain = keys.open(MANIFEST, file.manifest, encodeHeader(file.header));
  const manifest = parseJson(plain.toString('utf8'));
  if (!Array.isArray(manifest)) throw corrupt('its manifest is malformed');
  // Array.isArray narrows to any[]; every element is checked below.
  const [generation, entries]: readonly unknown[] = manifest;
  if (!isCount(generation) || !Array.isArray(entries) || entries.length !== file.records.length) {
    throw corrupt('its manifest does not fit its records');
  }
  const records = file.records.map((part, at) => parseEntry(entries[at], part));
  if (new Set(records.map(placeKey)).size !== records.length) throw corrupt('two records claim one place');
  return { generation, records };
}

/**
 * Reads, checks and opens the file at `path`.
 * @throws VaultError `VAULT_FILE_MISSING`, `VAULT_FILE_CORRUPT`, `VAULT_KEY_WRONG`, `VAULT_SOURCE_UNAVAILABLE`
 */
export function readContents(path: string, keys: VaultKeys): { contents: Contents; stamp: string } {
  const { bytes, stamp } = readStoredFile(path);
  const file = parseSealedFile(bytes);
  if (!keys.opens(file.header.keyId)) {
    throw new VaultError('VAULT_KEY_WRONG', `Cannot open the sealed file ${path}: it was sealed under another key`);
  }
  return { contents: openContents(file, keys), stamp };
}

function parseEntry(entry: unknown, part: SealedPart): StoredRecord {
  if (!Array.isArray(entry)) throw corrupt('its manifest is malformed');
  // Array.isArray narrows to any[]; every element is checked below.
  const fields: readonly unknown[] = entry;
  const [purpose, name, version, createdAt, firstCreatedAt, sizeBytes, actor, expected] = fields;
  if (expected !== digest(part)) throw corrupt('a record is not the one that was written last');
  const isActor = actor === null || typeof actor === 'string';
  if (!isKnownPurpose(purpose) || typeof name !== 'string' || !isCount(version) || !isCount(sizeBytes) || !isActor) {
    throw corrupt('its manifest is malformed');
  }
  if (typeof createdAt !== 'string' || typeof firstCreatedAt !== 'string') throw corrupt('its manifest is malformed');
  return { purpose, name, version, createdAt, firstCreatedAt, sizeBytes, actor, part };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message quotes what it read, which names secrets: not carried on as a cause.
    throw corrupt('its manifest is malformed');
  }
}

function isKnownPurpose(value: unknown): value is Purpose {
  return typeof value === 'string' && isPurpose(value);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
}

function placeKey(record: RecordPlace): string {
  return `${record.purpose} ${record.version} ${record.name}`;
}

function digest(part: SealedPart): string {
  return createHash('sha256').update(part.nonce).update(part.sealed).digest('base64');
}
