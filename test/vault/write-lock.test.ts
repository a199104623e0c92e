import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { Vault } from '../../vault/index.ts';
import { acquireWriteLock } from '../../vault/write-lock.ts';
import { capability, testNeeding } from '../kit/require-system.ts';
import { codeOf, countingRandom, keyFile, temporaryFolder } from './fixture.ts';

const procfs = capability('/proc', existsSync('/proc/self/stat') ? null : 'this system has no /proc');

test('two writers in one process do not lose an update', async (t) => {
  const folder = temporaryFolder(t);
  const options = { file: join(folder, 'v'), key: keyFile(folder) };
  const first = await Vault.create(options);
  const second = await Vault.open(options);
  t.teardown(() => [first, second].map((vault) => vault.close()));
  const names = Array.from({ length: 12 }, (_, at) => `name-${String(at).padStart(2, '0')}`);
  await Promise.all(names.map((name, at) => (at % 2 === 0 ? first : second).set(name, Buffer.from(name))));
  t.deepEqual(
    first.list().map((info) => info.name),
    names,
  );
  t.deepEqual(second.list(), first.list());
});

test('two processes that write one secret leave every version of both', async (t) => {
  const folder = temporaryFolder(t);
  const key = keyFile(folder);
  const file = join(folder, 'v');
  const vault = await Vault.create({ file, key });
  t.teardown(() => vault.close());
  const door = new URL('../../vault/index.js', import.meta.url).href;
  const script = `
    const { Vault } = await import(${JSON.stringify(door)});
    const vault = await Vault.open(${JSON.stringify({ file, key })});
    for (let i = 0; i < 5; i += 1) await vault.set('shared', Buffer.from('x'));
    vault.close();`;
  const children = [0, 1].map(() =>
    spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' }),
  );
  t.deepEqual(await Promise.all(children.map(async (child) => (await once(child, 'exit'))[0])), [0, 0]);
  t.is(vault.info('shared').version, 10);
});

test('a writer killed while it writes leaves a whole file, and the next writer goes on', async (t) => {
  const folder = temporaryFolder(t);
  const key = keyFile(folder);
  const file = join(folder, 'v');
  const vault = await Vault.create({ file, key });
  t.teardown(() => vault.close());
  const door = new URL('../../vault/index.js', import.meta.url).href;
  const script = `
    const { Vault } = await import(${JSON.stringify(door)});
    const vault = await Vault.open(${JSON.stringify({ file, key })});
    for (;;) process.stdout.write(String((await vault.set('a', Buffer.alloc(30_000, 1))).version) + ' ');`;
  let written = 0;
  for (const bytesBeforeKill of [1, 8, 20, 33]) {
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    for await (const chunk of child.stdout) {
      output += chunk;
      if (output.length >= bytesBeforeKill) child.kill('SIGKILL');
    }
    const told = Number(output.trim().split(' ').at(-1));
    t.true(told > written);
    // What was told to the caller is there; one more may have been renamed into place just before the end.
    const found = (await vault.set('a', Buffer.from('after'))).version - 1;
    t.true(found === told || found === told + 1, `${found} after ${told}`);
    written = found;
  }
  // A writer killed while it locks leaves the lock it had prepared, which goes when it is old.
  t.deepEqual(
    readdirSync(folder)
      .filter((name) => !name.startsWith('v.lock.'))
      .sort(),
    ['key-7', 'v'],
  );
});

test('acquireWriteLock() waits for a living holder and gives up with an error', async (t) => {
  const path = join(temporaryFolder(t), 'lock');
  const held = await acquireWriteLock(path);
  t.is(await codeOf(() => acquireWriteLock(path, 40)), 'VAULT_WRITE_FAILED');
  t.true(held.isHeld());
  held.release();
  held.release();
  t.false(existsSync(path));
  const next = await acquireWriteLock(path);
  next.release();
});

test('acquireWriteLock() takes over the lock of a process that ended', async (t) => {
  const path = join(temporaryFolder(t), 'lock');
  const child = spawn(process.execPath, ['-e', '']);
  await once(child, 'exit');
  await leaveLock(path, { pid: child.pid });
  const lock = await acquireWriteLock(path);
  t.true(lock.isHeld());
  lock.release();
});

testNeeding(procfs)('acquireWriteLock() takes over a lock whose pid now belongs to another process', async (t) => {
  const path = join(temporaryFolder(t), 'lock');
  await leaveLock(path, { startTicks: '1' });
  const lock = await acquireWriteLock(path);
  t.true(lock.isHeld());
  lock.release();
});

testNeeding(procfs)(
  'acquireWriteLock() leaves a fresh lock of another process namespace alone and takes an old one',
  async (t) => {
    const path = join(temporaryFolder(t), 'lock');
    await leaveLock(path, { pidNamespace: 'pid:[1]', pid: 1 });
    t.is(await codeOf(() => acquireWriteLock(path, 40)), 'VAULT_WRITE_FAILED');
    const past = statSync(path).mtimeMs / 1_000 - 120;
    utimesSync(path, past, past);
    (await acquireWriteLock(path)).release();
  },
);

test('acquireWriteLock() waits for a lock that names nobody until it is old', async (t) => {
  const path = join(temporaryFolder(t), 'lock');
  writeFileSync(path, '');
  t.is(await codeOf(() => acquireWriteLock(path, 40)), 'VAULT_WRITE_FAILED');
  age(path);
  (await acquireWriteLock(path)).release();
});

test('acquireWriteLock() removes what killed writers left, but nothing fresh', async (t) => {
  const folder = temporaryFolder(t);
  for (const name of ['lock.old', 'lock.new', 'locker']) writeFileSync(join(folder, name), '');
  for (const name of ['lock.old', 'locker']) age(join(folder, name));
  (await acquireWriteLock(join(folder, 'lock'))).release();
  t.deepEqual(readdirSync(folder).sort(), ['lock.new', 'locker']);
});

test('a writer that lost its lock does not commit', async (t) => {
  const random = countingRandom();
  let steals = false;
  const folder = temporaryFolder(t);
  const vault = await Vault.create({
    file: join(folder, 'v'),
    key: keyFile(folder),
    random: (sizeBytes) => {
      // Runs while the lock is held: somebody takes it away.
      if (steals) writeFileSync(join(folder, 'v.lock'), '{}');
      return random(sizeBytes);
    },
  });
  t.teardown(() => vault.close());
  steals = true;
  t.is(await codeOf(() => vault.set('a', Buffer.from('value'))), 'VAULT_WRITE_FAILED');
  t.deepEqual(vault.list(), []);
});

/** A lock as this process would write it, but for `changes`. */
async function leaveLock(path: string, changes: object): Promise<void> {
  const lock = await acquireWriteLock(path);
  const text = readFileSync(path, 'utf8');
  lock.release();
  writeFileSync(path, JSON.stringify({ ...JSON.parse(text), ...changes }));
}

/** Two minutes older than it is. */
function age(path: string): void {
  const past = statSync(path).mtimeMs / 1_000 - 120;
  utimesSync(path, past, past);
}
