/**
 * The hot serialiser's shortcut: consecutive records of one connection differ in eleven places, so all the rest is kept as bytes.
 * The layout is learned from the text RequestText gives for a probe, never written down a second time.
 */
import type { ChainFields, RequestText } from './request-text.ts';
import type { RequestRecord } from './types.ts';

/** A record that a stamp can write: request and response were there, nothing is unreadable. */
export type FullRecord = RequestRecord & {
  readonly request: NonNullable<RequestRecord['request']>;
  readonly response: NonNullable<RequestRecord['response']>;
};

/** Probe values: plain, and so long that a text which holds one by chance is a text made for it; then there is no stamp. */
const marks = {
  id: '@probe-id-51f0c2@',
  prev: '@probe-prev-51f0c2@',
  path: '@probe-path-51f0c2@',
  query: '@probe-query-51f0c2@',
  time: '@probe-time-51f0c2@',
  requestBytes: 7_770_000_000_000_001,
  responseBytes: 7_770_000_000_000_002,
  durationMs: 7_770_000_000_000_003,
  firstByteMs: 7_770_000_000_000_004,
  seq: 7_770_000_000_000_005,
} as const;

/** Longest number written: 16 digits, or a duration with three decimals. */
const numberChars = 24;
/** id and time; both have fixed lengths far below. */
const shortChars = 64;
/** A stamp is learned anew this often: what is redacted may have changed. */
export const stampLifeMs = 1000;

export class Stamp {
  /** Bytes up to where `"hash":` belongs. */
  readonly head: Buffer;
  readonly #from: FullRecord;
  readonly #parts: readonly Buffer[];
  readonly #fixedBytes: number;

  private constructor(from: FullRecord, head: Buffer, parts: readonly Buffer[]) {
    this.#from = from;
    this.head = head;
    this.#parts = parts;
    this.#fixedBytes = parts.reduce((sum, part) => sum + part.length, 0) + 5 * numberChars + 2 * shortChars + 64;
  }

  /** Null when the record is not one that repeats. */
  static of(record: RequestRecord, text: RequestText): Stamp | null {
    if (!isFull(record)) return null;
    const { id, prev, path, query, time, requestBytes, responseBytes, durationMs, firstByteMs, seq } = marks;
    const { request, response } = record;
    const hasQuery = request.query !== null;
    const probe = {
      ...record,
      id,
      request: { ...request, path, query: hasQuery ? query : null, bytes: requestBytes },
      response: { ...response, bytes: responseBytes, durationMs, firstByteMs },
    };
    text.build(probe, { seq, time, prev });
    if (!text.isAscii) return null;
    const order = [
      id,
      prev,
      requestBytes,
      path,
      ...(hasQuery ? [query] : []),
      responseBytes,
      durationMs,
      firstByteMs,
      seq,
      time,
    ];
    const parts = splitOnce(text.head + text.tail, order.map(String));
    return parts === null ? null : new Stamp(record, Buffer.from(text.head, 'latin1'), parts);
  }

  /** What is kept as bytes is the same in this record. */
  fits(record: RequestRecord): boolean {
    const { request, response, conn, upstream, credential } = record;
    const from = this.#from;
    return (
      conn === from.conn &&
      upstream === from.upstream &&
      credential === from.credential &&
      record.policy === from.policy &&
      record.sandbox === from.sandbox &&
      record.code === from.code &&
      record.reason === from.reason &&
      record.rule === from.rule &&
      record.verdict === from.verdict &&
      record.kind === from.kind &&
      record.redactions === from.redactions &&
      record.raw === null &&
      request !== null &&
      response !== null &&
      response.status === from.response.status &&
      request.method === from.request.method &&
      request.host === from.request.host &&
      request.port === from.request.port &&
      request.scheme === from.request.scheme &&
      (request.query === null) === (from.request.query === null)
    );
  }

  /** Room that `write` may need. */
  roomFor(record: FullRecord): number {
    return this.#fixedBytes + record.request.path.length + (record.request.query?.length ?? 0);
  }

  /** Writes the text without `hash` and returns its end; -1 when a varying string or number is not one it can write. */
  write(bytes: Buffer, start: number, record: FullRecord, chain: ChainFields): number {
    const { request, response } = record;
    const parts = this.#parts;
    let n = 0;
    let pos = put(bytes, parts[n++], start);
    pos = put(bytes, parts[n++], plain(bytes, record.id, pos));
    pos = put(bytes, parts[n++], ascii(bytes, chain.prev, pos));
    pos = put(bytes, parts[n++], integer(bytes, request.bytes, pos));
    pos = put(bytes, parts[n++], plain(bytes, request.path, pos));
    if (request.query !== null) pos = put(bytes, parts[n++], plain(bytes, request.query, pos));
    pos = put(bytes, parts[n++], integer(bytes, response.bytes, pos));
    pos = put(bytes, parts[n++], milliseconds(bytes, response.durationMs, pos));
    pos = put(bytes, parts[n++], milliseconds(bytes, response.firstByteMs, pos));
    pos = put(bytes, parts[n++], integer(bytes, chain.seq, pos));
    return put(bytes, parts[n], ascii(bytes, chain.time, pos));
  }
}

export function isFull(record: RequestRecord): record is FullRecord {
  return record.request !== null && record.response !== null && record.raw === null;
}

/** The pieces between the marks; null unless each mark stands there exactly once and in this order. */
function splitOnce(text: string, order: readonly string[]): Buffer[] | null {
  const parts: Buffer[] = [];
  let from = 0;
  for (const mark of order) {
    const at = text.indexOf(mark);
    if (at < from || text.indexOf(mark, at + 1) >= 0) return null;
    parts.push(Buffer.from(text.slice(from, at), 'latin1'));
    from = at + mark.length;
  }
  return [...parts, Buffer.from(text.slice(from), 'latin1')];
}

/** Up to here a loop beats the call into the runtime. */
const shortPart = 64;

/** Copies a kept piece; a position of -1 stays -1. */
function put(bytes: Buffer, part: Buffer | undefined, pos: number): number {
  if (pos < 0 || part === undefined) return -1;
  if (part.length > shortPart) bytes.set(part, pos);
  else for (let i = 0; i < part.length; i++) bytes[pos + i] = part[i] ?? 0;
  return pos + part.length;
}

/** A string of ours that is plain by its making: a hash, a time. */
export function ascii(bytes: Buffer, text: string, pos: number): number {
  if (pos < 0) return -1;
  for (let i = 0; i < text.length; i++) bytes[pos + i] = text.charCodeAt(i);
  return pos + text.length;
}

/** A string that is its own JSON text: printable ASCII without `"` and `\`. */
function plain(bytes: Buffer, text: string, pos: number): number {
  if (pos < 0) return -1;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c < 32 || c > 126 || c === 34 || c === 92) return -1;
    bytes[pos + i] = c;
  }
  return pos + text.length;
}

/** Above this, dividing by ten in doubles may round to the wrong digit. */
const maxInteger = 1e15;

/** A whole number from 0, as JSON writes it. */
function integer(bytes: Buffer, value: number, pos: number): number {
  if (pos < 0 || !Number.isInteger(value) || value < 0 || value > maxInteger) return -1;
  let end = pos + 1;
  for (let rest = value; rest >= 10; rest = Math.floor(rest / 10)) end++;
  let rest = value;
  for (let at = end - 1; at >= pos; at--) {
    const next = Math.floor(rest / 10);
    bytes[at] = 48 + rest - next * 10;
    rest = next;
  }
  return end;
}

/** A number with at most three decimals, as JSON writes it: no trailing zero. */
function milliseconds(bytes: Buffer, value: number, pos: number): number {
  const thousandths = Math.round(value * 1000);
  // Below 10^12 a double with three decimals is its own shortest text.
  if (pos < 0 || !(value >= 0) || value >= 1e12 || thousandths / 1000 !== value) return -1;
  const whole = Math.floor(thousandths / 1000);
  let end = integer(bytes, whole, pos);
  let rest = thousandths - whole * 1000;
  if (rest === 0) return end;
  bytes[end++] = 46;
  for (let unit = 100; rest > 0; unit /= 10) {
    const digit = Math.floor(rest / unit);
    bytes[end++] = 48 + digit;
    rest -= digit * unit;
  }
  return end;
}
