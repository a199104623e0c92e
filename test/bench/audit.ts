/** Cost of one audit record beside the obvious way to write it, in the same run. */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AuditLog, createAuditSigner, createUlid, generateAuditKey } from '../../gateway/audit/index.ts';
import type { RequestRecord } from '../../gateway/audit/types.ts';

export interface AuditBenchResult {
  /** Medians over the rounds. `call` is the time inside `reserve()` and `request()`; `cpu` is that of the whole process, all threads, with writing. */
  readonly microsecondsPerRecord: {
    readonly log: { readonly call: number; readonly cpu: number };
    readonly baseline: { readonly call: number; readonly cpu: number };
  };
  /** Median of the ratios of each round's pair. */
  readonly ratio: { readonly call: number; readonly cpu: number };
  readonly records: number;
  readonly rounds: number;
}

const rounds = 9;
const recordsPerRound = 10_000;
/** Records between two turns of the event loop: what a busy gateway does in one. */
const burst = 50;

/** Alternates short rounds of both writers and pairs them, so that a slow moment of the machine meets both. */
export async function bench(options: { json: boolean }): Promise<AuditBenchResult> {
  const dir = await mkdtemp(join(tmpdir(), 'sallyport-bench-'));
  try {
    const result = await measure(dir);
    if (!options.json) print(result);
    return result;
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

interface Cost {
  readonly call: number;
  readonly cpu: number;
}

async function measure(dir: string): Promise<AuditBenchResult> {
  const signer = createAuditSigner(generateAuditKey());
  const config = { fsync: 'interval', checkpointEveryMs: 60_000, rotateBytes: 1 << 30, maxQueued: 65_536 } as const;
  const log = await AuditLog.open({ dir: join(dir, 'log'), node: 'bench', signer, config });
  const baseline = new Baseline(join(dir, 'baseline.jsonl'));
  const ours = (record: RequestRecord): void => {
    if (log.reserve()) log.request(record);
  };
  const theirs = (record: RequestRecord): void => baseline.write(record);
  await round(ours, () => log.flush());
  await round(theirs, () => baseline.flush());
  const pairs: [log: Cost, baseline: Cost][] = [];
  for (let i = 0; i < rounds; i++) {
    pairs.push([await round(ours, () => log.flush()), await round(theirs, () => baseline.flush())]);
  }
  await log.close();
  await baseline.close();
  return {
    microsecondsPerRecord: {
      log: medians(pairs.map((pair) => pair[0])),
      baseline: medians(pairs.map((pair) => pair[1])),
    },
    ratio: medians(pairs.map(([a, b]) => ({ call: a.call / b.call, cpu: a.cpu / b.cpu }))),
    records: recordsPerRound,
    rounds,
  };
}

async function round(write: (record: RequestRecord) => void, flush: () => Promise<void>): Promise<Cost> {
  const ulid = createUlid();
  let callMs = 0;
  let cpuMicros = 0;
  for (let done = 0; done < recordsPerRound; done += burst) {
    // Made outside the measured part: the gateway has the record's values anyway.
    const batch = Array.from({ length: burst }, (_, i) => sample(ulid(), done + i));
    const cpu = process.cpuUsage();
    const start = performance.now();
    for (const record of batch) write(record);
    callMs += performance.now() - start;
    await new Promise((resolve) => setImmediate(resolve));
    cpuMicros += total(process.cpuUsage(cpu));
  }
  const cpu = process.cpuUsage();
  await flush();
  cpuMicros += total(process.cpuUsage(cpu));
  return { call: (callMs * 1000) / recordsPerRound, cpu: cpuMicros / recordsPerRound };
}

/** The same record, chain and file without any of our work: generic serialisation twice, a hash object, a stream. */
class Baseline {
  readonly #stream;
  #seq = 0;
  #prev = '0'.repeat(64);

  constructor(path: string) {
    this.#stream = createWriteStream(path, { highWaterMark: 1 << 26 });
  }

  write(record: RequestRecord): void {
    this.#seq++;
    const full = { ...record, v: 1, seq: this.#seq, time: new Date().toISOString(), node: 'bench', prev: this.#prev };
    this.#prev = createHash('sha256').update(JSON.stringify(full)).digest('hex');
    this.#stream.write(`${JSON.stringify({ ...full, hash: this.#prev })}\n`);
  }

  flush(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#stream.write('', (error) => (error ? reject(error) : resolve()));
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.#stream.end(resolve));
  }
}

/** Kept-alive connections, as the gateway holds them. */
const conns = Array.from({ length: 16 }, (_, i) => connection(50_000 + i));
const sandbox = { id: 'sandbox-7', labels: { team: 'research', app: 'agent' } };
const policy = { name: 'default', digest: 'd'.repeat(64), generation: 3 };
const credential = { name: 'github', version: '4', slots: ['authorization'] };

function sample(id: string, index: number): RequestRecord {
  return {
    kind: 'http.request',
    id,
    sandbox,
    policy,
    verdict: 'allow',
    rule: 'github-read',
    code: 'allowed',
    reason: 'rule github-read allows GET api.github.example',
    conn: conns[index % conns.length] ?? connection(0),
    request: {
      method: 'GET',
      scheme: 'https',
      host: 'api.github.example',
      port: 443,
      path: `/repos/acme/widgets/issues/${index}`,
      query: null,
      bytes: 212,
    },
    raw: null,
    upstream: { address: '192.0.2.10:443', tls: 'TLSv1.3', certSha256: 'c'.repeat(64), connectMs: 0 },
    response: { status: 200, bytes: 5321, firstByteMs: (index % 997) / 64, durationMs: (index % 997) / 32 },
    credential,
    redactions: 0,
  };
}

function connection(port: number): RequestRecord['conn'] {
  return { via: 'connect', src: `127.0.0.1:${port}`, sni: 'api.github.example', alpn: 'http/1.1', tls: 'TLSv1.3' };
}

function total(usage: NodeJS.CpuUsage): number {
  return usage.user + usage.system;
}

function medians(costs: readonly Cost[]): Cost {
  return { call: median(costs.map((cost) => cost.call)), cpu: median(costs.map((cost) => cost.cpu)) };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

function print({ microsecondsPerRecord: { log, baseline }, ratio, records }: AuditBenchResult): void {
  const line = (name: string, cost: Cost, unit: string): string =>
    `${name.padEnd(28)} ${cost.call.toFixed(2).padStart(8)}${unit} ${cost.cpu.toFixed(2).padStart(8)}${unit}`;
  console.log(
    `audit: one record, median of ${rounds} rounds of ${records}      call      cpu (all threads, with writing)`,
  );
  console.log(line('sallyport', log, ' us'));
  console.log(line('JSON.stringify + createHash', baseline, ' us'));
  console.log(line('ratio', ratio, 'x  '));
}
