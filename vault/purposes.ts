/** What the master key is used for. Each purpose has a key of its own, so a text sealed for one never opens as another. */

/** Purposes whose records callers seal and unseal themselves; never among the listed secrets. */
export type SealedPurpose = 'interception-ca' | 'audit-signing' | 'placeholders';

export type Purpose = SealedPurpose | 'manifest' | 'secrets';

/** Subkey numbers are part of the file format: never renumbered, never reused. 0 is the key check. */
export const purposeNumbers = {
  manifest: 1,
  secrets: 2,
  'interception-ca': 3,
  'audit-signing': 4,
  placeholders: 5,
} as const satisfies Record<Purpose, number>;

export function isPurpose(text: string): text is Purpose {
  return Object.hasOwn(purposeNumbers, text);
}
