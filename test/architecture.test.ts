/** Holds the code to the shape of .github/ARCHITECTURE.md: who may import whom, how long a file may be, what the root may hold. */
import { readdirSync } from 'node:fs';
import test from 'ava';
import {
  freeIdentifiers,
  type Import,
  repositoryRoot,
  repositoryText,
  type SourceFile,
  sourceFiles,
} from './kit/source-tree.ts';

/** What one top-level folder may import. */
interface FolderRule {
  /** Our other folders: `types` = only types of its types.ts, `door` = index.ts, types.ts and errors.ts. */
  readonly ours: Readonly<Record<string, 'types' | 'door'>>;
  /** Allowed `node:` modules; null = any. */
  readonly node: readonly string[] | null;
  /** Allowed packages; null = any of `dependencies`. */
  readonly packages: readonly string[] | null;
}

const product: Readonly<Record<string, FolderRule>> = {
  policy: { ours: {}, node: ['node:crypto', 'node:url'], packages: ['ajv', 'tldts', 'yaml'] },
  vault: { ours: { policy: 'types' }, node: null, packages: null },
  gateway: { ours: { policy: 'door', vault: 'door' }, node: null, packages: null },
};

const doors = ['index.ts', 'types.ts', 'errors.ts'];

/** Packages that only one file or folder may import, so that replacing or auditing them stays one place. */
const packageHomes: Readonly<Record<string, string>> = {
  ajv: 'policy/',
  commander: 'gateway/cli/',
  fastify: 'gateway/api/',
  'libsodium-wrappers': 'vault/sodium.ts',
  tldts: 'policy/',
};

/** What `policy/` may not touch: it is a function of its arguments. */
const impure = [
  'process',
  'Date',
  'performance',
  'fetch',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'globalThis',
  'console',
];

const QUESTION_LINES = 300;
const MAX_LINES = 600;

/** Files above 300 lines, each with why it is one idea all the same. */
const argued: Readonly<Record<string, string>> = {
  'gateway/egress/dialer.ts':
    'look-up, judgement and dial of one connection are read together, so that no step can be skipped',
  'gateway/egress/exchange.ts': 'one state machine: every way an exchange ends writes exactly one record',
  'gateway/egress/session.ts': 'one state machine: what a client connection may do next',
  'gateway/egress/tunnel.ts': 'one state machine: CONNECT until the first request',
  'gateway/gateway.ts': 'start and stop order of everything, in one place',
};

const root = {
  folders: ['gateway', 'policy', 'test', 'vault'],
  files: ['CHANGELOG.md', 'LICENSE', 'README.md', 'package-lock.json', 'package.json', 'tsconfig.json'],
  unversioned: ['dist', 'node_modules'],
};

const files = sourceFiles([...Object.keys(product), 'test']);
const productFiles = files.filter((file) => folderOf(file.path) !== 'test');
const manifest = readManifest();

for (const folder of Object.keys(product)) {
  test(`${folder}/ imports only what the table allows`, (t) => {
    const wrong = productFiles
      .filter((file) => folderOf(file.path) === folder)
      .flatMap((file) =>
        file.imports.filter((one) => !mayImport(file, one)).map((one) => `${file.path} → ${one.specifier}`),
      );
    t.deepEqual(wrong, []);
  });
}

test('imports of our own files name files that exist', (t) => {
  const known = new Set(files.map((file) => file.path));
  const wrong = files.flatMap((file) =>
    file.imports.flatMap((one) =>
      one.file === null || !one.file.endsWith('.ts') || known.has(one.file) ? [] : [`${file.path} → ${one.specifier}`],
    ),
  );
  t.deepEqual(wrong, []);
});

test('packages with one home are imported from there only', (t) => {
  const wrong = productFiles.flatMap((file) =>
    file.imports.flatMap((one) => {
      const home = packageHomes[packageName(one.specifier) ?? ''];
      return home === undefined || file.path.startsWith(home) ? [] : [`${file.path} → ${one.specifier}`];
    }),
  );
  t.deepEqual(wrong, []);
});

test('test/ imports only packages of package.json', (t) => {
  const known = { ...manifest.dependencies, ...manifest.devDependencies };
  const wrong = files.flatMap((file) =>
    file.imports.flatMap((one) => {
      const name = packageName(one.specifier);
      return name === null || name in known ? [] : [`${file.path} → ${one.specifier}`];
    }),
  );
  t.deepEqual(wrong, []);
});

test('no file reaches itself through its imports', (t) => {
  t.deepEqual(cycles(files), []);
});

test('policy/ uses no clock, no environment and no I/O', (t) => {
  const wrong = productFiles
    .filter((file) => folderOf(file.path) === 'policy')
    .flatMap((file) => impure.filter((name) => freeIdentifiers(file).has(name)).map((name) => `${file.path}: ${name}`));
  t.deepEqual(wrong, []);
  t.deepEqual(
    productFiles
      .filter((file) => folderOf(file.path) === 'policy' && file.text.includes('Math.random'))
      .map(({ path }) => path),
    [],
  );
});

test(`files above ${QUESTION_LINES} lines are argued for, none is above ${MAX_LINES}`, (t) => {
  const long = files.filter((file) => file.lines > QUESTION_LINES);
  t.deepEqual(long.filter((file) => file.lines > MAX_LINES).map(withLines), []);
  t.deepEqual(long.filter((file) => argued[file.path] === undefined).map(withLines), []);
  t.deepEqual(
    Object.keys(argued).filter((path) => !long.some((file) => file.path === path)),
    [],
  );
});

test('each product folder has its door, types, errors and README', (t) => {
  for (const folder of Object.keys(product)) {
    const names = readdirSync(`${repositoryRoot}/${folder}`);
    for (const name of [...doors, 'README.md']) t.true(names.includes(name), `${folder}/${name}`);
  }
});

test('the root holds what ARCHITECTURE.md says and nothing else', (t) => {
  const visible = readdirSync(repositoryRoot).filter(
    (name) => !name.startsWith('.') && !root.unversioned.includes(name),
  );
  t.deepEqual(visible.sort(), [...root.folders, ...root.files].sort());
});

test('package.json pins exact versions', (t) => {
  const wanted = { ...manifest.dependencies, ...manifest.devDependencies };
  t.deepEqual(
    Object.entries(wanted).filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version)),
    [],
  );
});

test('package-lock.json names no registry and has a digest for every package', (t) => {
  const lock: unknown = JSON.parse(repositoryText('package-lock.json'));
  const packages = Object.entries(record(record(lock).packages)).filter(([path]) => path !== '');
  t.true(packages.length > 0);
  t.deepEqual(
    packages
      .filter(([, entry]) => 'resolved' in record(entry) || !('integrity' in record(entry)))
      .map(([path]) => path),
    [],
  );
});

function mayImport(file: SourceFile, one: Import): boolean {
  const own = folderOf(file.path);
  const rule = product[own];
  if (rule === undefined) return true;
  if (one.file !== null) return mayImportOurs(own, rule, one, one.file);
  if (one.specifier.startsWith('node:')) return rule.node === null || rule.node.includes(one.specifier);
  const name = packageName(one.specifier);
  if (name === null || !(name in manifest.dependencies)) return false;
  return rule.packages === null || rule.packages.includes(name);
}

function mayImportOurs(own: string, rule: FolderRule, one: Import, target: string): boolean {
  const other = folderOf(target);
  if (other === own) return true;
  const access = rule.ours[other];
  if (access === undefined) return false;
  if (access === 'types') return target === `${other}/types.ts` && one.typeOnly;
  return doors.some((door) => target === `${other}/${door}`);
}

/** Each cycle of value imports once, as `a → b → a`. Types are erased, so two files of one folder may share them freely. */
function cycles(all: readonly SourceFile[]): readonly string[] {
  const next = new Map(all.map((file) => [file.path, valueImports(file)]));
  const done = new Set<string>();
  const found: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const at = trail.indexOf(path);
    if (at >= 0) {
      found.push([...trail.slice(at), path].join(' → '));
      return;
    }
    if (done.has(path)) return;
    for (const to of next.get(path) ?? []) visit(to, [...trail, path]);
    done.add(path);
  };
  for (const file of all) visit(file.path, []);
  return found;
}

function valueImports(file: SourceFile): readonly string[] {
  return file.imports.flatMap((one) => (one.file === null || one.typeOnly ? [] : [one.file]));
}

function folderOf(path: string): string {
  return path.split('/')[0] ?? '';
}

/** `ajv/dist/2020.js` → `ajv`; null for our own files and Node's modules. */
function packageName(specifier: string): string | null {
  if (specifier.startsWith('.') || specifier.startsWith('node:')) return null;
  const parts = specifier.split('/');
  return specifier.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? null);
}

function withLines(file: SourceFile): string {
  return `${file.path}: ${file.lines} lines`;
}

function readManifest(): { dependencies: Record<string, string>; devDependencies: Record<string, string> } {
  const manifest = record(JSON.parse(repositoryText('package.json')));
  return { dependencies: strings(manifest.dependencies), devDependencies: strings(manifest.devDependencies) };
}

function strings(value: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(record(value)).map(([key, one]) => [key, String(one)]));
}

function record(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null)
    throw new TypeError('Cannot read a JSON file: an object was expected');
  return Object.fromEntries(Object.entries(value));
}
