/** The identity of a policy: what it means, not where its lines stand. */
import { createHash } from 'node:crypto';
import type { PolicyDocument } from './types.ts';

export interface Digest {
  /** SHA-256, 64 lower-case hex digits. */
  readonly digest: string;
  readonly sizeBytes: number;
}

/** Hashes the canonical JSON (sorted keys, no blanks) of the document without line numbers and tests. */
export function digestOf(document: PolicyDocument): Digest {
  const { tests: _tests, ...meaning } = document;
  const json = canonicalJson(meaning);
  return { digest: createHash('sha256').update(json).digest('hex'), sizeBytes: Buffer.byteLength(json) };
}

function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) {
    return `[${value.map(canonicalJson).join(',')}]`;
  }
  if (typeof value === 'object' && value !== null) {
    const members: string[] = [];
    for (const key of Object.keys(value).sort()) {
      const member: unknown = Reflect.get(value, key);
      if (member === undefined || (key === 'line' && typeof member === 'number')) continue;
      members.push(`${JSON.stringify(key)}:${canonicalJson(member)}`);
    }
    return `{${members.join(',')}}`;
  }
  return JSON.stringify(value);
}
