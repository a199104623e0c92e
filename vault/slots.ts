/** Records grouped by what they are versions of. */
import type { StoredRecord } from './contents.ts';
import { VaultError } from './errors.ts';
import type { Purpose } from './purposes.ts';
import type { SecretInfo } from './types.ts';

/** All versions of one name under one purpose. */
export interface Slot {
  readonly purpose: Purpose;
  readonly name: string;
  readonly keep: number;
}

/** Records by {@link slotKey}. */
export function bySlot(records: readonly StoredRecord[]): ReadonlyMap<string, readonly StoredRecord[]> {
  const slots = new Map<string, StoredRecord[]>();
  for (const record of records) {
    const key = slotKey(record.purpose, record.name);
    const slot = slots.get(key);
    if (slot === undefined) slots.set(key, [record]);
    else slot.push(record);
  }
  return slots;
}

/** No purpose holds a space. */
export function slotKey(purpose: Purpose, name: string): string {
  return `${purpose} ${name}`;
}

export function isSecret(record: StoredRecord): boolean {
  return record.purpose === 'secrets';
}

export function isIn(slot: Slot, record: StoredRecord): boolean {
  return record.purpose === slot.purpose && record.name === slot.name;
}

export function newest(records: readonly StoredRecord[]): StoredRecord | undefined {
  return records.reduce<StoredRecord | undefined>((best, next) => {
    return best === undefined || next.version > best.version ? next : best;
  }, undefined);
}

/** The records with one version more; what the slot no longer keeps is left out. */
export function withVersion(records: readonly StoredRecord[], slot: Slot, added: StoredRecord): StoredRecord[] {
  const kept = records.filter((record) => !isIn(slot, record) || record.version > added.version - slot.keep);
  return [...kept, added];
}

/** What may be told of a secret. @throws VaultError `VAULT_SECRET_MISSING` when there are no records */
export function infoOf(records: readonly StoredRecord[], name: string): SecretInfo {
  const last = newest(records);
  if (last === undefined) throw missing(name);
  const { version, firstCreatedAt, createdAt, sizeBytes, actor } = last;
  const info = { name, version, versions: records.length, createdAt: firstCreatedAt, updatedAt: createdAt, sizeBytes };
  return actor === null ? info : { ...info, updatedBy: actor };
}

export function missing(name: string): VaultError {
  return new VaultError('VAULT_SECRET_MISSING', `Cannot find secret ${name}: the sealed file has none`);
}
