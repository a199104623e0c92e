// Empties dist/ and compiles. A stale .js of a deleted test would go on running, so dist/ never survives a build.
import { spawnSync } from 'node:child_process';
import { rmSync, utimesSync, writeFileSync } from 'node:fs';
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
const startedAt = new Date();
rmSync(join(root, 'dist'), { recursive: true, force: true });
const done = spawnSync(process.execPath, [tsc, '-p', root], { stdio: 'inherit' });
if (done.status === 0) stamp(join(root, 'dist', '.built'));
process.exit(done.status ?? 2);

// Dated at the start: a source changed while tsc ran is newer than the stamp and built again by .ci/setup.
function stamp(path) {
  writeFileSync(path, '');
  utimesSync(path, startedAt, startedAt);
}
