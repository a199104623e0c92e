/** The chain of hashes: gives every record its number, time, predecessor and place, and signs checkpoints. */
import { join } from 'node:path';
import { asciiLine } from './canonical.ts';
import { cleanText, textLimits } from './clean-record.ts';
import { AuditClock } from './clock.ts';
import { type EventFields, eventFields } from './event-text.ts';
import { auditFileName } from './files.ts';
import { sha256Hex } from './record-line.ts';
import { RequestText } from './request-text.ts';
import { type AuditSigner, checkpointMessage } from './signer.ts';
import type { Spool } from './spool.ts';
import { isFull, Stamp, stampLifeMs } from './stamp.ts';
import type { EventRecord, RequestRecord } from './types.ts';
import { createUlid } from './ulid.ts';

export interface ChainOptions {
  readonly dir: string;
  readonly node: string;
  readonly signer: AuditSigner;
  readonly rotateBytes: number;
  readonly now?: (() => number) | undefined;
  readonly redact?: ((text: string) => string) | undefined;
}

/** Where a chain begins or goes on. */
export interface ChainStart {
  readonly seq: number;
  readonly hash: string;
  /** File to append to; null = a new one at the next record. */
  readonly file: string | null;
}

/** Appends to the spool. Invariant: records reach the spool in the order of their seq, each with the hash of the one before. */
export class Chain {
  /** Of the last record. */
  seq: number;
  hash: string;
  file: string | null;
  readonly #options: ChainOptions;
  readonly #spool: Spool;
  readonly #clock: AuditClock;
  readonly #ulid: () => string;
  readonly #node: string;
  readonly #nodeText: string;
  readonly #text: RequestText;
  /** By the identity of a connection; goes with it. */
  readonly #stamps = new WeakMap<object, { readonly stamp: Stamp | null; readonly until: number }>();
  readonly #firstSeq: number;
  #signedSeq: number;
  #checkpointSeq: number;

  constructor(options: ChainOptions, spool: Spool, start: ChainStart) {
    this.#options = options;
    this.#spool = spool;
    this.seq = start.seq;
    this.hash = start.hash;
    this.file = start.file;
    this.#firstSeq = start.seq;
    this.#signedSeq = start.seq;
    this.#checkpointSeq = start.seq;
    this.#clock = new AuditClock(options.now);
    this.#ulid = createUlid(options.now);
    this.#node = cleanText(options.node, textLimits.other);
    this.#nodeText = JSON.stringify(this.#node);
    this.#text = new RequestText(this.#node, options.redact);
  }

  /** Something was appended since the last checkpoint. */
  get isUnsigned(): boolean {
    return this.seq > this.#checkpointSeq;
  }

  /** Something was appended at all. */
  get isUsed(): boolean {
    return this.seq > this.#firstSeq;
  }

  /** `time` is Unix time in milliseconds. Throws, with nothing appended, when the record is not what its type says. */
  request(record: RequestRecord, time: number): void {
    if (!this.#stamped(record, time)) {
      const text = this.#text;
      text.build(record, { seq: this.seq + 1, time: this.#clock.text(time), prev: this.hash });
      this.#add(text.head, text.tail, text.isAscii);
    }
    if (this.#spool.position >= this.#options.rotateBytes) this.#rotate();
  }

  event(record: EventRecord): void {
    this.#addFields(eventFields(record, this.#options.redact));
    if (this.#spool.position >= this.#options.rotateBytes) this.#rotate();
  }

  /** Signs everything so far. A signer that fails costs the signature, not the log: the gap says so, the next one covers it. */
  checkpoint(closing: boolean): void {
    const signer = this.#options.signer;
    const claim = { fromSeq: this.#signedSeq + 1, toSeq: this.seq, hash: this.hash, closing };
    const signature = trySign(signer, checkpointMessage({ node: this.#node, ...claim }));
    if (signature === null) {
      this.#addFields(eventFields({ kind: 'audit.gap', reason: 'checkpoint not signed', detail: { dropped: 0 } }));
    } else {
      this.#addFields(eventFields({ kind: 'audit.checkpoint', detail: { ...claim, keyId: signer.keyId, signature } }));
      this.#signedSeq = claim.toSeq;
    }
    this.#checkpointSeq = this.seq;
  }

  /** The checkpoint is the file's last record; the next record opens a new file and carries the chain over. */
  #rotate(): void {
    this.checkpoint(false);
    this.file = null;
  }

  /** The short way for a record that is like the one before on its connection. False = not taken, nothing appended. */
  #stamped(record: RequestRecord, time: number): boolean {
    if (this.file === null || !isFull(record)) return false;
    const stamp = this.#stampFor(record);
    if (stamp === null || !this.#isClean(record.request.path) || !this.#isClean(record.request.query)) return false;
    const fields = { seq: this.seq + 1, time: this.#clock.text(time), prev: this.hash };
    const hash = this.#spool.appendStamped(stamp, record, fields);
    if (hash === null) return false;
    this.seq++;
    this.hash = hash;
    return true;
  }

  #stampFor(record: RequestRecord): Stamp | null {
    const known = this.#stamps.get(record.conn);
    const now = performance.now();
    if (known?.stamp?.fits(record) === true && now < known.until) return known.stamp;
    // A first record may be the only one of its kind: it is remembered, and a stamp is made for the second.
    const stamp = known === undefined ? null : Stamp.of(record, this.#text);
    this.#stamps.set(record.conn, { stamp, until: now + stampLifeMs });
    return stamp;
  }

  /** Short enough, and without a secret. */
  #isClean(text: string | null): boolean {
    if (text === null) return true;
    return (
      text.length <= textLimits.path && (this.#options.redact === undefined || this.#options.redact(text) === text)
    );
  }

  #add(head: string, tail: string, isAscii: boolean): void {
    if (this.file === null) {
      this.file = join(this.#options.dir, auditFileName(this.seq + 1));
      this.#spool.startFile(this.file);
    }
    this.seq++;
    if (isAscii) {
      this.hash = this.#spool.appendHashed(head, tail);
    } else {
      this.hash = sha256Hex(head + tail);
      this.#spool.append(`${asciiLine(head)}"hash":"${this.hash}",${asciiLine(tail)}`);
    }
  }

  #addFields(fields: EventFields): void {
    if (!fields.has('id')) fields.set('id', `"${this.#ulid()}"`);
    fields.set('node', this.#nodeText);
    fields.set('prev', `"${this.hash}"`);
    fields.set('seq', String(this.seq + 1));
    fields.set('time', `"${this.#clock.text()}"`);
    fields.set('v', '1');
    const members = (names: string[]): string => names.map((name) => `"${name}":${fields.get(name)}`).join(',');
    const names = [...fields.keys()].sort();
    const before = members(names.filter((name) => name < 'hash'));
    const head = before === '' ? '{' : `{${before},`;
    const tail = `${members(names.filter((name) => name > 'hash'))}}`;
    this.#add(head, tail, printableAscii.test(head) && printableAscii.test(tail));
  }
}

const printableAscii = /^[\x20-\x7e]*$/;

function trySign(signer: AuditSigner, message: Buffer): string | null {
  try {
    return signer.sign(message).toString('base64');
  } catch {
    // The caller records the loss; the signer's message might tell about the key.
    return null;
  }
}
