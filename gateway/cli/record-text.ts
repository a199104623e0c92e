/** One audit record as a line for people. */
import type { StoredRecord } from '../audit/index.ts';
import { plainText } from './plain-text.ts';

/** Time, verdict, what was asked, by which rule, with which outcome. Strings of the record came from the wire: cleaned. */
export function recordText(record: StoredRecord): string {
  const words = [
    record.time,
    text(record.verdict) ?? '-',
    record.kind,
    text(field(record.sandbox, 'id')) ?? text(record.actor) ?? '-',
    requestText(record.request),
    text(record.rule) === null ? text(record.code) : `rule=${text(record.rule)}`,
    statusText(record.response),
    prefixed('credential=', field(record.credential, 'name')),
    reasonText(record.reason),
    record.id,
  ];
  return words.filter((word) => word !== null && word !== '').join('  ');
}

function requestText(request: unknown): string | null {
  const method = text(field(request, 'method'));
  if (method === null) return null;
  const query = text(field(request, 'query'));
  const authority = `${text(field(request, 'host'))}:${text(field(request, 'port'))}`;
  // Its target is the authority; what does not parse as one is shown as it came.
  if (method === 'CONNECT') return `CONNECT ${authority === ':0' ? text(field(request, 'path')) : authority}`;
  const place = `${text(field(request, 'scheme'))}://${authority}`;
  return `${method} ${place}${text(field(request, 'path')) ?? ''}${query === null ? '' : `?${query}`}`;
}

/** Problems of a policy come as several lines. */
function reasonText(reason: unknown): string | null {
  return typeof reason === 'string' ? `"${text(reason.replaceAll(/\n\s*/g, ' / '))}"` : null;
}

function statusText(response: unknown): string | null {
  return prefixed('status=', field(response, 'status'));
}

function prefixed(prefix: string, value: unknown): string | null {
  const shown = text(value);
  return shown === null ? null : `${prefix}${shown}`;
}

function field(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.getOwnPropertyDescriptor(value, name)?.value;
}

function text(value: unknown): string | null {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' ? plainText(value, 300) : null;
}
