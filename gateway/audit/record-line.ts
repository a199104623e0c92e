/** Reads one line of a log back: shape, canonical form and its own hash. */
import * as crypto from 'node:crypto';
import { asciiLine, canonicalMembers } from './canonical.ts';
import { maxLineBytes } from './files.ts';

/** A record as read back. */
export interface StoredRecord {
  readonly v: number;
  readonly seq: number;
  readonly id: string;
  readonly time: string;
  readonly node: string;
  readonly kind: string;
  readonly prev: string;
  readonly hash: string;
  readonly [field: string]: unknown;
}

export type ReadLine =
  | { readonly ok: true; readonly record: StoredRecord }
  /** `seq` and `id` as far as the line tells them. */
  | { readonly ok: false; readonly why: string; readonly seq: number | null; readonly id: string | null };

/** Judges one line without its newline. Never throws. */
export function readRecordLine(line: Buffer): ReadLine {
  if (line.length > maxLineBytes) return bad('line too long', null);
  const text = line.toString('latin1');
  if (!printableAscii.test(text)) return bad('not printable ASCII', null);
  const value = parse(text);
  if (value === null) return bad('not a JSON object', null);
  const shape = wrongShape(value);
  if (shape !== null) return bad(shape, value);
  const members = safeMembers(value);
  if (members === null || asciiLine(`{${members.join(',')}}`) !== text) return bad('not in canonical form', value);
  const unhashed = members.filter((member) => !member.startsWith('"hash":'));
  if (sha256Hex(`{${unhashed.join(',')}}`) !== value.hash) return bad('hash does not match', value);
  // wrongShape() has checked the type of every field that StoredRecord names.
  return { ok: true, record: value as StoredRecord };
}

/** SHA-256 over bytes, or over the UTF-8 of a text, hex. One call where Node has it (20.12). */
export const sha256Hex: (data: string | Buffer) => string =
  typeof crypto.hash === 'function'
    ? (data) => crypto.hash('sha256', data, 'hex')
    : (data) => crypto.createHash('sha256').update(data).digest('hex');

const printableAscii = /^[\x20-\x7e]*$/;
const hashShape = /^[0-9a-f]{64}$/;
const timeShape = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

function parse(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    // A parsed JSON object has string keys and unknown values, which is what the type says.
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

function wrongShape(value: Record<string, unknown>): string | null {
  if (value.v !== 1) return 'unknown version';
  if (!Number.isSafeInteger(value.seq) || Number(value.seq) < 1) return 'seq is not a positive integer';
  if (typeof value.time !== 'string' || !timeShape.test(value.time)) return 'time is malformed';
  for (const name of ['id', 'node', 'kind'] as const) {
    if (typeof value[name] !== 'string') return `${name} is missing`;
  }
  for (const name of ['prev', 'hash'] as const) {
    const hash = value[name];
    if (typeof hash !== 'string' || !hashShape.test(hash)) return `${name} is malformed`;
  }
  return null;
}

/** Null where a canonical form does not exist: a lone surrogate, or nested beyond our bound. */
function safeMembers(value: object): string[] | null {
  try {
    return canonicalMembers(value);
  } catch {
    return null;
  }
}

function bad(why: string, value: Record<string, unknown> | null): ReadLine {
  const seq = typeof value?.seq === 'number' ? value.seq : null;
  return { ok: false, why, seq, id: typeof value?.id === 'string' ? value.id : null };
}
