/** The policy files of a folder, read without a gateway. */
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { loadPolicy } from '../../policy/index.ts';
import type { PolicyDocument } from '../../policy/types.ts';

/** Documents of every file that loads. Best effort: whether a policy is in force is the gateway's word, not this list's. */
export function policyDocuments(dir: string): readonly PolicyDocument[] {
  return policyFiles(dir).flatMap((file) => {
    const loaded = loadPolicy(readFileSync(file), { file });
    return loaded.ok ? [loaded.document] : [];
  });
}

function policyFiles(dir: string): readonly string[] {
  try {
    return readdirSync(dir)
      .filter((name) => ['.yaml', '.yml', '.json'].includes(extname(name)))
      .map((name) => join(dir, name));
  } catch {
    // No folder, or not ours to read: the gateway that owns it says so when it matters.
    return [];
  }
}
