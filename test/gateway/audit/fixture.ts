/** A log in a temporary directory, and records to put into it. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { AuditLog, type AuditLogOptions, createAuditSigner, generateAuditKey } from '../../../gateway/audit/index.ts';
import type { RequestRecord } from '../../../gateway/audit/types.ts';

export const keyPem = generateAuditKey();
export const signer = createAuditSigner(keyPem);

export const config = {
  fsync: 'never',
  checkpointEveryMs: 3_600_000,
  rotateBytes: 1 << 30,
  maxQueued: 10_000,
} as const;

/** A directory that is removed when the test ends. */
export async function tempDir(t: ExecutionContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'sallyport-audit-'));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

export type LogOptions = Partial<Omit<AuditLogOptions, 'config'>> & {
  readonly config?: Partial<AuditLogOptions['config']>;
};

export function openLog(dir: string, options: LogOptions = {}): Promise<AuditLog> {
  return AuditLog.open({ node: 'n1', signer, ...options, dir, config: { ...config, ...options.config } });
}

/** A full record, `changes` laid over it. */
export function record(changes: Partial<RequestRecord> = {}): RequestRecord {
  return {
    kind: 'http.request',
    id: '01HZXW8K5QJ4F6Y7Z8A9BCDEFG',
    sandbox: { id: 'sb-1', labels: { team: 'red', app: 'web' } },
    policy: { name: 'default', digest: 'd'.repeat(64), generation: 7 },
    verdict: 'allow',
    rule: 'github',
    code: 'allowed',
    reason: 'rule github allows it',
    conn: { via: 'connect', src: '127.0.0.1:50000', sni: 'api.example.test', alpn: 'http/1.1', tls: 'TLSv1.3' },
    request: {
      method: 'GET',
      scheme: 'https',
      host: 'api.example.test',
      port: 443,
      path: '/repos/a/b',
      query: 'page=…',
      bytes: 120,
    },
    raw: null,
    upstream: { address: '192.0.2.7:443', tls: 'TLSv1.3', certSha256: 'c'.repeat(64), connectMs: 1.5 },
    response: { status: 200, bytes: 5120, firstByteMs: 12.25, durationMs: 14.75 },
    credential: { name: 'gh', version: '3', slots: ['authorization'] },
    redactions: 0,
    ...changes,
  };
}

/** Writes `count` requests through the whole interface; false when one was refused. */
export function writeMany(
  log: AuditLog,
  count: number,
  changes: (index: number) => Partial<RequestRecord> = () => ({}),
): boolean {
  for (let i = 0; i < count; i++) {
    if (!log.reserve()) return false;
    log.request(record({ id: `id-${i}`, ...changes(i) }));
  }
  return true;
}

export async function logFiles(dir: string): Promise<string[]> {
  return (await readdir(dir)).filter((name) => name.endsWith('.jsonl')).sort();
}

/** All lines of all files, parsed. */
export async function readAll(dir: string): Promise<Record<string, unknown>[]> {
  const texts = await Promise.all((await logFiles(dir)).map((name) => readFile(join(dir, name), 'latin1')));
  return texts
    .join('')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}
