// Empties dist/ and compiles. A stale .js of a deleted test would go on running, so dist/ never survives a build.
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const require = createRequire(import.meta.url);

function compilerPath() {
  try {
    return require.resolve('typescript/bin/tsc');
  } catch {
    return null;
  }
}

const tsc = compilerPath();
if (tsc === null) {
  console.error('Cannot build: typescript is not installed. Run: npm ci');
  process.exit(2);
}
rmSync(join(root, 'dist'), { recursive: true, force: true });
const done = spawnSync(process.execPath, [tsc, '-p', root], { stdio: 'inherit' });
process.exit(done.status ?? 2);
