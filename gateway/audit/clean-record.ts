/** Bounds and cleans what a record was given: long strings are cut, ill-formed ones mended, secrets taken out. */
import { wellFormed } from './canonical.ts';
import type { RequestRecord } from './types.ts';

/** Longest strings kept, in UTF-16 code units; what is longer is cut and says so. Chosen so that a line stays below 256 KiB. */
export const textLimits = {
  path: 2048,
  query: 2048,
  reason: 512,
  raw: 1024,
  /** A DNS name has 253; a malformed one is still evidence. */
  host: 512,
  labelKey: 64,
  /** Everything else: names, digests, addresses, label values. */
  other: 256,
} as const;

/** Labels of one sandbox that are kept; the configuration allows fewer. */
export const maxLabels = 64;
/** Slots of one credential that are kept. */
export const maxSlots = 16;

type Redact = ((text: string) => string) | undefined;

/** Cuts to the limit, says how much was cut, and makes the text well-formed. */
export function cleanText(text: string, limit: number, redact?: (text: string) => string): string {
  // Secrets go first: a cut might leave half of one.
  const whole = redact === undefined ? text : redact(text);
  if (whole.length <= limit) return wellFormed(whole);
  return `${wellFormed(whole.slice(0, limit))}[cut ${whole.length - limit}]`;
}

/** The record as it will be stored. */
export function cleanRecord(record: RequestRecord, redact: Redact): object {
  const { conn, sandbox, policy, request, upstream, response, credential } = record;
  const clean = (text: string, limit: number = textLimits.other): string => cleanText(text, limit, redact);
  const orNull = (text: string | null, limit?: number): string | null => (text === null ? null : clean(text, limit));
  return {
    kind: record.kind,
    id: clean(record.id),
    sandbox: sandbox === null ? null : cleanSandbox(sandbox, redact),
    policy: policy === null ? null : cleanPolicy(policy, redact),
    verdict: record.verdict,
    rule: orNull(record.rule),
    code: clean(record.code),
    reason: clean(record.reason, textLimits.reason),
    conn: {
      via: clean(conn.via),
      src: clean(conn.src),
      sni: orNull(conn.sni, textLimits.host),
      alpn: orNull(conn.alpn),
      tls: orNull(conn.tls),
    },
    request: request === null ? null : cleanRequest(request, redact),
    raw: orNull(record.raw, textLimits.raw),
    upstream:
      upstream === null
        ? null
        : {
            address: clean(upstream.address),
            tls: orNull(upstream.tls),
            certSha256: orNull(upstream.certSha256),
            connectMs: finite(upstream.connectMs),
          },
    response:
      response === null
        ? null
        : {
            status: finite(response.status),
            bytes: finite(response.bytes),
            firstByteMs: finite(response.firstByteMs),
            durationMs: finite(response.durationMs),
          },
    credential:
      credential === null
        ? null
        : {
            name: clean(credential.name),
            version: clean(credential.version),
            slots: credential.slots.slice(0, maxSlots).map((slot) => clean(slot)),
          },
    redactions: finite(record.redactions),
  };
}

export function cleanSandbox(sandbox: NonNullable<RequestRecord['sandbox']>, redact: Redact): object {
  const labels = Object.entries(sandbox.labels)
    .slice(0, maxLabels)
    .map(([key, value]) => [
      cleanText(key, textLimits.labelKey, redact),
      cleanText(String(value), textLimits.other, redact),
    ]);
  // fromEntries defines each key as its own property, also `__proto__`; keys that were cut to the same text become one.
  return { id: cleanText(sandbox.id, textLimits.other, redact), labels: Object.fromEntries(labels) };
}

export function cleanPolicy(policy: NonNullable<RequestRecord['policy']>, redact: Redact): object {
  return {
    name: cleanText(policy.name, textLimits.other, redact),
    digest: cleanText(policy.digest, textLimits.other, redact),
    generation: finite(policy.generation),
  };
}

/**
 * Whether every string but those of sandbox and policy is within its limit and its own JSON text: `ascii` when printable, `wide` when
 * the line form must escape something (a redacted query holds U+2026), `no` when it must be cleaned or escaped. One pattern over one text of 300 characters costs a quarter of one pattern for each of eighteen strings.
 */
export function plainness(record: RequestRecord): 'ascii' | 'wide' | 'no' {
  const { conn, request, upstream, credential } = record;
  let text = record.code + record.reason + record.id + conn.src + conn.via;
  if (record.rule !== null) text += record.rule;
  if (record.raw !== null) text += record.raw;
  if (conn.sni !== null) text += conn.sni;
  if (conn.alpn !== null) text += conn.alpn;
  if (conn.tls !== null) text += conn.tls;
  if (request !== null) {
    text += request.method + request.scheme + request.host + request.path;
    if (request.query !== null) text += request.query;
  }
  if (upstream !== null) {
    text += upstream.address;
    if (upstream.certSha256 !== null) text += upstream.certSha256;
    if (upstream.tls !== null) text += upstream.tls;
  }
  if (credential !== null) {
    if (credential.slots.length > maxSlots) return 'no';
    text += credential.name + credential.version;
    for (const slot of credential.slots) text += slot;
  }
  if (text.length > textLimits.other && !areShort(record)) return 'no';
  if (plainAscii.test(text)) return 'ascii';
  return plainWide.test(text) ? 'wide' : 'no';
}

/** Without `"` and `\`. */
const plainAscii = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
/** Neither an escape of RFC 8785 nor a surrogate, paired or not. */
const plainWide = /^[\x20\x21\x23-\x5b\x5d-\ud7ff\ue000-\uffff]*$/;

function areShort(record: RequestRecord): boolean {
  const { conn, request, upstream, credential } = record;
  const other = textLimits.other;
  return (
    record.code.length <= other &&
    record.id.length <= other &&
    record.reason.length <= textLimits.reason &&
    isShort(record.rule, other) &&
    isShort(record.raw, textLimits.raw) &&
    conn.src.length <= other &&
    conn.via.length <= other &&
    isShort(conn.sni, textLimits.host) &&
    isShort(conn.alpn, other) &&
    isShort(conn.tls, other) &&
    (request === null || isRequestShort(request)) &&
    (upstream === null ||
      (upstream.address.length <= other && isShort(upstream.certSha256, other) && isShort(upstream.tls, other))) &&
    (credential === null ||
      (credential.name.length <= other &&
        credential.version.length <= other &&
        credential.slots.every((slot) => slot.length <= other)))
  );
}

function isRequestShort(request: NonNullable<RequestRecord['request']>): boolean {
  return (
    request.method.length <= textLimits.other &&
    request.scheme.length <= textLimits.other &&
    request.host.length <= textLimits.host &&
    request.path.length <= textLimits.path &&
    isShort(request.query, textLimits.query)
  );
}

function isShort(text: string | null, limit: number): boolean {
  return text === null || text.length <= limit;
}

function cleanRequest(request: NonNullable<RequestRecord['request']>, redact: Redact): object {
  return {
    method: cleanText(request.method, textLimits.other, redact),
    scheme: cleanText(request.scheme, textLimits.other, redact),
    host: cleanText(request.host, textLimits.host, redact),
    port: finite(request.port),
    path: cleanText(request.path, textLimits.path, redact),
    query: request.query === null ? null : cleanText(request.query, textLimits.query, redact),
    bytes: finite(request.bytes),
  };
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
