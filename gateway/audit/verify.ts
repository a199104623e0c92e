/** Verifies a log from its files alone, in constant memory. */
import type { KeyObject } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { access, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { GatewayError } from '../errors.ts';
import { auditNames, firstSeqOf, genesisHash, listAuditFiles } from './files.ts';
import { readLines } from './lines.ts';
import { readRecordLine, type StoredRecord } from './record-line.ts';
import { readPublicKeys, verifyCheckpoint } from './signer.ts';

export interface VerifyOptions {
  /** The audit directory, or its files in any order; the names say which comes first. */
  readonly source: { readonly dir: string } | { readonly files: readonly string[] };
  /** Trusted public keys (one or more PEM blocks). Without them `audit.pub` beside the log is used, which whoever changed the log may have changed too. */
  readonly publicKeyPem?: string;
  /** A head known from elsewhere (`status()`, a checkpoint in the SIEM): the only way to notice that the newest records were cut off. */
  readonly expectHead?: { readonly seq: number; readonly hash: string };
  readonly signal?: AbortSignal;
}

export interface VerifyReport {
  readonly ok: boolean;
  readonly records: number;
  readonly files: number;
  readonly checkpoints: number;
  /** Losses that the writer recorded itself. */
  readonly gaps: readonly AuditGap[];
  readonly firstBad: FirstBad | null;
  /** Seq of the oldest record present; above 1 when older files were moved away. */
  readonly firstSeq: number | null;
  readonly head: { readonly seq: number; readonly hash: string } | null;
  /** Newest seq that a verified signature vouches for. */
  readonly signedUpTo: number | null;
  /** Records behind the newest checkpoint: chained, but whoever can write the file could have rewritten them. */
  readonly unsignedTail: number;
  /** Bytes of a last line that is not complete: being written, or torn by a crash and mended at the next opening. */
  readonly tornBytes: number;
  /** Where the keys came from. With `none`, no signature was checked. */
  readonly keys: 'trusted' | 'beside' | 'none';
}

export interface AuditGap {
  readonly seq: number;
  readonly time: string;
  readonly reason: string;
  /** Upper bound of lost records; null = unknown. */
  readonly atMost: number | null;
  /** Exact count, where the writer knew it. */
  readonly dropped: number | null;
}

export interface FirstBad {
  readonly file: string;
  /** 1-based. */
  readonly line: number;
  /** As the line says, or the seq that should stand there. */
  readonly seq: number | null;
  readonly id: string | null;
  readonly why: string;
}

/**
 * Reads every line until the first bad one: form, hash, chain, hand-over between files, signatures.
 * @throws GatewayError `GATEWAY_AUDIT_FAILED` when the files or the key cannot be read; a bad log is a report, not an error
 */
export async function verifyAudit(options: VerifyOptions): Promise<VerifyReport> {
  try {
    const files = await sourceFiles(options.source);
    const { keys, from } = await publicKeys(options);
    const walk = new Walk(keys, options.expectHead);
    for (const [index, path] of files.entries()) {
      await walk.file(path, index === files.length - 1, options.signal);
      if (walk.firstBad !== null) break;
    }
    return walk.report(from);
  } catch (cause) {
    if (cause instanceof GatewayError || options.signal?.aborted) throw cause;
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unexpected';
    throw new GatewayError('GATEWAY_AUDIT_FAILED', `Cannot verify audit log: ${code}`, { cause });
  }
}

/** Reads `seq:hash` as a person hands it to `--expect-head`. Null when it is not that. */
export function parseHead(text: string): { seq: number; hash: string } | null {
  const match = /^([1-9]\d{0,14}):([0-9a-f]{64})$/.exec(text);
  return match === null ? null : { seq: Number(match[1]), hash: match[2] ?? '' };
}

/** Gaps listed in a report; a log with more needs the log itself. */
export const maxGapsListed = 1000;

class Walk {
  firstBad: FirstBad | null = null;
  readonly #keys: readonly KeyObject[];
  readonly #expect: VerifyOptions['expectHead'];
  readonly #gaps: AuditGap[] = [];
  #records = 0;
  #files = 0;
  #checkpoints = 0;
  #firstSeq: number | null = null;
  #last: { seq: number; hash: string } | null = null;
  #signedUpTo: number | null = null;
  #checkpointSeq = 0;
  #tornBytes = 0;
  #hasExpected = false;

  constructor(keys: readonly KeyObject[], expect: VerifyOptions['expectHead']) {
    this.#keys = keys;
    this.#expect = expect;
  }

  async file(path: string, isLast: boolean, signal: AbortSignal | undefined): Promise<void> {
    this.#files++;
    const name = basename(path);
    let line = 0;
    for await (const piece of readLines(createReadStream(path, { signal }))) {
      line++;
      if (!piece.isComplete && isLast && !piece.isTooLong) {
        this.#tornBytes = piece.bytes.length;
        return;
      }
      const bad = piece.isComplete ? this.#line(piece.bytes, line, name) : fault('line is cut off');
      if (bad === null) continue;
      this.firstBad = { file: name, line, ...bad, seq: bad.seq ?? (this.#last === null ? null : this.#last.seq + 1) };
      return;
    }
  }

  report(keys: VerifyReport['keys']): VerifyReport {
    const last = this.#last;
    const isHeadMissing = this.#expect !== undefined && !this.#hasExpected && this.firstBad === null;
    const firstBad = isHeadMissing
      ? {
          file: '',
          line: 0,
          seq: this.#expect?.seq ?? null,
          id: null,
          why: 'expected head is missing: records were cut off',
        }
      : this.firstBad;
    return {
      ok: firstBad === null,
      records: this.#records,
      files: this.#files,
      checkpoints: this.#checkpoints,
      gaps: this.#gaps,
      firstBad,
      firstSeq: this.#firstSeq,
      head: last,
      signedUpTo: this.#signedUpTo,
      unsignedTail: last === null ? 0 : last.seq - Math.max(this.#checkpointSeq, (this.#firstSeq ?? 1) - 1),
      tornBytes: this.#tornBytes,
      keys,
    };
  }

  #line(bytes: Buffer, line: number, file: string): Fault | null {
    const read = readRecordLine(bytes);
    if (!read.ok) return { why: read.why, seq: read.seq, id: read.id };
    const { record } = read;
    const why = this.#chainFault(record, line, file) ?? this.#kindFault(record);
    if (why !== null) return { why, seq: record.seq, id: record.id };
    this.#records++;
    this.#firstSeq ??= record.seq;
    this.#last = { seq: record.seq, hash: record.hash };
    return null;
  }

  #chainFault(record: StoredRecord, line: number, file: string): string | null {
    const last = this.#last;
    if (line === 1 && firstSeqOf(file) !== null && firstSeqOf(file) !== record.seq)
      return 'first seq is not the one in the file name';
    if (last === null && record.seq === 1 && record.prev !== genesisHash) return 'prev of the first record is not zero';
    if (last !== null && record.seq !== last.seq + 1) return `seq ${last.seq + 1} expected`;
    if (last !== null && record.prev !== last.hash) return 'prev is not the hash of the record before';
    if (record.seq !== this.#expect?.seq) return null;
    this.#hasExpected = record.hash === this.#expect.hash;
    return this.#hasExpected ? null : 'hash is not the expected one';
  }

  #kindFault(record: StoredRecord): string | null {
    if (record.kind === 'audit.gap') this.#gap(record);
    return record.kind === 'audit.checkpoint' ? this.#checkpoint(record) : null;
  }

  #checkpoint(record: StoredRecord): string | null {
    const { fromSeq, toSeq, hash, closing, signature } = members(record.detail);
    if (typeof fromSeq !== 'number' || typeof toSeq !== 'number' || typeof hash !== 'string')
      return 'checkpoint is malformed';
    if (typeof closing !== 'boolean' || typeof signature !== 'string') return 'checkpoint is malformed';
    if (toSeq !== record.seq - 1 || hash !== record.prev || fromSeq > toSeq) return 'checkpoint is for other records';
    this.#checkpoints++;
    this.#checkpointSeq = record.seq;
    if (this.#keys.length === 0) return null;
    const claim = { node: record.node, fromSeq, toSeq, hash, closing };
    if (!verifyCheckpoint(claim, signature, this.#keys)) return 'signature does not verify with the public key';
    this.#signedUpTo = toSeq;
    return null;
  }

  #gap(record: StoredRecord): void {
    if (this.#gaps.length >= maxGapsListed) return;
    const { atMost, dropped } = members(record.detail);
    this.#gaps.push({
      seq: record.seq,
      time: record.time,
      reason: typeof record.reason === 'string' ? record.reason : '',
      atMost: typeof atMost === 'number' ? atMost : null,
      dropped: typeof dropped === 'number' ? dropped : null,
    });
  }
}

interface Fault {
  readonly why: string;
  readonly seq: number | null;
  readonly id: string | null;
}

function fault(why: string): Fault {
  return { why, seq: null, id: null };
}

function members(value: unknown): Record<string, unknown> {
  // A parsed JSON object has string keys and unknown values, which is what the type says.
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

async function sourceFiles(source: VerifyOptions['source']): Promise<string[]> {
  if ('dir' in source) {
    // A mistyped directory must not pass as an empty, good log.
    await access(source.dir);
    return (await listAuditFiles(source.dir)).map((file) => file.path);
  }
  // Names are zero-padded: sorting by name is sorting by seq. Other names keep the order they were given in.
  const isNamed = source.files.every((path) => firstSeqOf(basename(path)) !== null);
  return isNamed
    ? source.files.toSorted((a, b) => (firstSeqOf(basename(a)) ?? 0) - (firstSeqOf(basename(b)) ?? 0))
    : [...source.files];
}

async function publicKeys(options: VerifyOptions): Promise<{ keys: KeyObject[]; from: VerifyReport['keys'] }> {
  if (options.publicKeyPem !== undefined) return { keys: readPublicKeys(options.publicKeyPem), from: 'trusted' };
  if (!('dir' in options.source)) return { keys: [], from: 'none' };
  try {
    const pem = await readFile(join(options.source.dir, auditNames.publicKey), 'latin1');
    return { keys: readPublicKeys(pem), from: 'beside' };
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return { keys: [], from: 'none' };
    throw error;
  }
}
