// Exit 0 when node_modules holds exactly what package-lock.json says, else 1. npm writes node_modules/.package-lock.json as
// the last act of an install, so a half-done install never matches.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

function packagesOf(path) {
  try {
    const { '': _root, ...packages } = JSON.parse(readFileSync(join(root, path), 'utf8')).packages;
    return packages;
  } catch {
    return null;
  }
}

function matches(wanted, installed) {
  if (wanted === null || installed === null) return false;
  for (const [path, want] of Object.entries(wanted)) {
    const have = installed[path];
    // Packages of other platforms stay out.
    if (have === undefined && want.optional !== true) return false;
    if (have !== undefined && (have.version !== want.version || have.integrity !== want.integrity)) return false;
  }
  return Object.keys(installed).every((path) => path in wanted);
}

process.exit(matches(packagesOf('package-lock.json'), packagesOf('node_modules/.package-lock.json')) ? 0 : 1);
