/** The hot serialiser: a request record to its canonical text, field by field in sorted order, no generic walk. */
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

/** What the chain adds to a record. */
export interface ChainFields {
  readonly seq: number;
  readonly time: string;
  readonly prev: string;
}

/**
 * Serialises request records. The canonical text without `hash` is `head + tail`; the line is
 * `head + "hash":"…", + tail`, in its ASCII form when `isAscii` is false.
 */
export class RequestText {
  /** `{` up to where `"hash":` belongs; ends with a comma. */
  head = '';
  /** From `"id":` to `}`. */
  tail = '';
  /** False when `head` or `tail` holds something outside printable ASCII. */
  isAscii = true;

  readonly #node: string;
  readonly #nodeIsAscii: boolean;
  readonly #redact: ((text: string) => string) | undefined;
  #redacting = false;
  /** Every string of the record at hand is within its limit and needs no escape: quoting is two quotes. */
  #isPlain = false;
  #hasEscapes = false;
  #lastSandbox: object | null = null;
  #lastSandboxText = unknown;
  #lastPolicy: object | null = null;
  #lastPolicyText = unknown;
  readonly #known = new WeakMap<object, Known>();

  constructor(node: string, redact?: (text: string) => string) {
    this.#node = this.#quote(node, textLimits.other);
    this.#nodeIsAscii = this.isAscii;
    this.#redact = redact;
  }

  /** Fills `head`, `tail` and `isAscii`. */
  build(record: RequestRecord, chain: ChainFields): void {
    this.#redacting = false;
    this.#fill(record, chain);
    if (this.#redact === undefined) return;
    // A secret without characters that JSON escapes shows in the finished text: one search instead of one per field.
    if (!this.#hasEscapes && this.isAscii && unchanged(this.#redact, this.head) && unchanged(this.#redact, this.tail))
      return;
    this.#redacting = true;
    this.#fill(record, chain);
  }

  #fill(record: RequestRecord, chain: ChainFields): void {
    this.isAscii = this.#nodeIsAscii;
    this.#hasEscapes = false;
    this.#isPlain = !this.#redacting && isPlain(record);
    const { conn, request, response, upstream } = record;
    const other = textLimits.other;
    this.head =
      `{"code":${this.#quote(record.code, other)},"conn":{"alpn":${this.#orNull(conn.alpn, other)}` +
      `,"sni":${this.#orNull(conn.sni, textLimits.host)},"src":${this.#quote(conn.src, other)}` +
      `,"tls":${this.#orNull(conn.tls, other)},"via":${this.#quote(conn.via, other)}},"credential":${this.#credential(record.credential)},`;
    this.tail =
      `"id":${this.#quote(record.id, other)},"kind":"${record.kind}","node":${this.#node},"policy":${this.#policy(record.policy)}` +
      `,"prev":"${chain.prev}","raw":${this.#orNull(record.raw, textLimits.raw)},"reason":${this.#quote(record.reason, textLimits.reason)}` +
      `,"redactions":${number(record.redactions)},"request":${request === null ? 'null' : this.#request(request)}` +
      `,"response":${response === null ? 'null' : responseText(response)},"rule":${this.#orNull(record.rule, other)}` +
      `,"sandbox":${this.#sandbox(record.sandbox)},"seq":${chain.seq},"time":"${chain.time}"` +
      `,"upstream":${upstream === null ? 'null' : this.#upstream(upstream)},"v":1,"verdict":"${record.verdict}"}`;
  }

  #request(request: NonNullable<RequestRecord['request']>): string {
    return (
      `{"bytes":${number(request.bytes)},"host":${this.#quote(request.host, textLimits.host)}` +
      `,"method":${this.#quote(request.method, textLimits.other)},"path":${this.#quote(request.path, textLimits.path)}` +
      `,"port":${number(request.port)},"query":${this.#orNull(request.query, textLimits.query)}` +
      `,"scheme":${this.#quote(request.scheme, textLimits.other)}}`
    );
  }

  #upstream(upstream: NonNullable<RequestRecord['upstream']>): string {
    return (
      `{"address":${this.#quote(upstream.address, textLimits.other)},"certSha256":${this.#orNull(upstream.certSha256, textLimits.other)}` +
      `,"connectMs":${number(upstream.connectMs)},"tls":${this.#orNull(upstream.tls, textLimits.other)}}`
    );
  }

  #sandbox(sandbox: RequestRecord['sandbox']): string {
    if (sandbox === null) return 'null';
    if (sandbox !== this.#lastSandbox) {
      this.#lastSandboxText = this.#recall(sandbox, () => this.#sandboxText(sandbox));
      this.#lastSandbox = sandbox;
    }
    return this.#use(this.#lastSandboxText);
  }

  #policy(policy: RequestRecord['policy']): string {
    if (policy === null) return 'null';
    if (policy !== this.#lastPolicy) {
      this.#lastPolicyText = this.#recall(policy, () => this.#policyText(policy));
      this.#lastPolicy = policy;
    }
    return this.#use(this.#lastPolicyText);
  }

  #credential(credential: RequestRecord['credential']): string {
    if (credential === null) return 'null';
    const slots = credential.slots.slice(0, maxSlots).map((slot) => this.#quote(slot, textLimits.other));
    return (
      `{"name":${this.#quote(credential.name, textLimits.other)},"slots":[${slots.join(',')}]` +
      `,"version":${this.#quote(credential.version, textLimits.other)}}`
    );
  }

  #sandboxText(sandbox: NonNullable<RequestRecord['sandbox']>): string {
    // Through a map: two over-long keys may be cut to the same text, and a key may stand only once.
    const labels = new Map<string, string>();
    for (const key of Object.keys(sandbox.labels).sort().slice(0, maxLabels)) {
      const value = sandbox.labels[key];
      if (typeof value === 'string') labels.set(cleanText(key, textLimits.labelKey), value);
    }
    const members = [...labels.keys()]
      .sort()
      .map((key) => `${JSON.stringify(key)}:${this.#quote(labels.get(key) ?? '', textLimits.other)}`);
    if (members.some((member) => !printableAscii.test(member))) this.isAscii = false;
    return `{"id":${this.#quote(sandbox.id, textLimits.other)},"labels":{${members.join(',')}}}`;
  }

  #policyText(policy: NonNullable<RequestRecord['policy']>): string {
    return (
      `{"digest":${this.#quote(policy.digest, textLimits.other)},"generation":${number(policy.generation)}` +
      `,"name":${this.#quote(policy.name, textLimits.other)}}`
    );
  }

  /** The text of an object that does not change while it is referenced. Its strings come from the configuration. */
  #recall(object: object, make: () => string): Known {
    const known = this.#known.get(object);
    if (known !== undefined) return known;
    const before = { isAscii: this.isAscii, redacting: this.#redacting, isPlain: this.#isPlain };
    this.isAscii = true;
    this.#redacting = true;
    this.#isPlain = false;
    const made: Known = { text: make(), isAscii: this.isAscii };
    this.isAscii = before.isAscii;
    this.#redacting = before.redacting;
    this.#isPlain = before.isPlain;
    this.#known.set(object, made);
    return made;
  }

  #use(known: Known): string {
    if (!known.isAscii) this.isAscii = false;
    return known.text;
  }

  #orNull(text: string | null, limit: number): string {
    return text === null ? 'null' : this.#quote(text, limit);
  }

  #quote(text: string, limit: number): string {
    if (this.#isPlain) return `"${text}"`;
    const clean = cleanText(this.#redacting && this.#redact !== undefined ? this.#redact(text) : text, limit);
    const quoted = JSON.stringify(clean);
    if (quoted.length !== clean.length + 2) this.#hasEscapes = true;
    if (!printableAscii.test(quoted)) this.isAscii = false;
    return quoted;
  }
}

/** Cuts to the limit, says how much was cut, and makes the text well-formed. */
export function cleanText(text: string, limit: number): string {
  if (text.length <= limit) return wellFormed(text);
  return `${wellFormed(text.slice(0, limit))}[cut ${text.length - limit}]`;
}

interface Known {
  readonly text: string;
  readonly isAscii: boolean;
}

const unknown: Known = { text: 'null', isAscii: true };
/** Printable ASCII without `"` and `\`: what JSON writes as it is. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
const printableAscii = /^[\x20-\x7e]*$/;

/**
 * One test for all strings that are not remembered: a pattern on one text of 300 characters costs a quarter of eighteen patterns.
 * Lengths are checked in sum first: nearly every record is shorter in all than the smallest limit allows one field.
 */
function isPlain(record: RequestRecord): boolean {
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
    text += credential.name + credential.version;
    for (const slot of credential.slots) text += slot;
  }
  return (text.length <= textLimits.other || areShort(record)) && plain.test(text);
}

function areShort(record: RequestRecord): boolean {
  const { conn, request, upstream, credential } = record;
  const other = textLimits.other;
  return (
    record.code.length <= other &&
    record.id.length <= other &&
    record.reason.length <= textLimits.reason &&
    (record.rule === null || record.rule.length <= other) &&
    (record.raw === null || record.raw.length <= textLimits.raw) &&
    conn.src.length <= other &&
    conn.via.length <= other &&
    (conn.sni === null || conn.sni.length <= textLimits.host) &&
    (conn.alpn === null || conn.alpn.length <= other) &&
    (conn.tls === null || conn.tls.length <= other) &&
    (request === null || isRequestShort(request)) &&
    (upstream === null ||
      (upstream.address.length <= other &&
        (upstream.certSha256 === null || upstream.certSha256.length <= other) &&
        (upstream.tls === null || upstream.tls.length <= other))) &&
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
    (request.query === null || request.query.length <= textLimits.query)
  );
}

/** A measured value that went wrong must not cost the record: what JSON cannot say is null. */
function number(value: number): string {
  return Number.isFinite(value) ? `${value}` : 'null';
}

function responseText(response: NonNullable<RequestRecord['response']>): string {
  return (
    `{"bytes":${number(response.bytes)},"durationMs":${number(response.durationMs)}` +
    `,"firstByteMs":${number(response.firstByteMs)},"status":${number(response.status)}}`
  );
}

function unchanged(redact: (text: string) => string, text: string): boolean {
  return redact(text) === text;
}
