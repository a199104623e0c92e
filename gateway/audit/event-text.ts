/** The generic serialiser of rare records: any plain value to bounded canonical text. */
import { asciiLine, maxJsonDepth } from './canonical.ts';
import { cleanText, textLimits } from './clean-record.ts';
import type { EventRecord } from './types.ts';

/** Members of one object or array that are kept. A policy reload lists its problems; a hundred say enough. */
export const maxMembers = 128;
/** Line form of one `detail`, and of any other field; larger ones are replaced by their size, so that a line stays below 256 KiB. */
export const maxDetailChars = 128 * 1024;
export const maxFieldChars = 12 * 1024;

/** The fields of an event, each with its canonical text. */
export type EventFields = Map<string, string>;

/** Reads an event defensively: whatever it holds becomes bounded JSON, nothing throws. */
export function eventFields(record: EventRecord, redact: (text: string) => string = same): EventFields {
  const fields: EventFields = new Map();
  for (const name of eventFieldNames) {
    const value = record[name];
    if (value === undefined || value === null) continue;
    const text = boundedJson(value, redact, 0);
    const chars = asciiLine(text).length;
    fields.set(name, chars <= (name === 'detail' ? maxDetailChars : maxFieldChars) ? text : `{"cutChars":${chars}}`);
  }
  return fields;
}

const eventFieldNames = ['kind', 'id', 'sandbox', 'actor', 'policy', 'verdict', 'code', 'reason', 'detail'] as const;

function same(text: string): string {
  return text;
}

function boundedJson(value: unknown, redact: (text: string) => string, depth: number): string {
  if (typeof value === 'string') return JSON.stringify(cleanText(value, textLimits.path, redact));
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : 'null';
  if (typeof value === 'bigint') return JSON.stringify(String(value));
  if (typeof value !== 'object' || value === null) return 'null';
  if (value instanceof Date) return JSON.stringify(Number.isNaN(value.getTime()) ? null : value.toISOString());
  // The depth bound also ends cycles.
  if (depth >= maxJsonDepth - 2) return '"[nested too deep]"';
  if (Array.isArray(value)) {
    const items = value.slice(0, maxMembers).map((item: unknown) => boundedJson(item, redact, depth + 1));
    if (value.length > maxMembers) items.push(`"[cut ${value.length - maxMembers}]"`);
    return `[${items.join(',')}]`;
  }
  return boundedObject(value, redact, depth);
}

function boundedObject(value: object, redact: (text: string) => string, depth: number): string {
  const members = new Map<string, string>();
  const entries = Object.entries(value).filter(([, member]) => member !== undefined && typeof member !== 'function');
  for (const [key, member] of entries.slice(0, maxMembers)) {
    members.set(cleanText(key, textLimits.other, redact), boundedJson(member, redact, depth + 1));
  }
  if (entries.length > maxMembers) members.set('[cut]', String(entries.length - maxMembers));
  return `{${[...members.keys()]
    .sort()
    .map((key) => `${JSON.stringify(key)}:${members.get(key)}`)
    .join(',')}}`;
}
