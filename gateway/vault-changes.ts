/** Who changed which secret, as far as the sealed file tells: the CLI writes it without asking the gateway. */
import type { SecretInfo } from '../vault/index.ts';

export interface VaultChange {
  readonly change: 'added' | 'replaced' | 'removed';
  readonly name: string;
  /** The version in force now; null when removed. */
  readonly version: number | null;
  /** Who wrote that version, as told at the time; null when nobody was named, or when the secret was removed. */
  readonly by: string | null;
}

/** What differs between two listings, by name. */
export function vaultChanges(before: readonly SecretInfo[], after: readonly SecretInfo[]): readonly VaultChange[] {
  const old = new Map(before.map((info) => [info.name, info]));
  const written = after.flatMap((info): VaultChange[] => {
    const known = old.get(info.name);
    // A secret that was removed and set again starts at version 1 once more.
    if (known?.version === info.version && known.updatedAt === info.updatedAt) return [];
    const change = known === undefined ? 'added' : 'replaced';
    return [{ change, name: info.name, version: info.version, by: info.updatedBy ?? null }];
  });
  const names = new Set(after.map(({ name }) => name));
  const removed = before.filter(({ name }) => !names.has(name));
  return [...written, ...removed.map(({ name }) => ({ change: 'removed' as const, name, version: null, by: null }))];
}
