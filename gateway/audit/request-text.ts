/** The hot serialiser: a request record to its canonical text, field by field in sorted order, no generic walk. */
import { canonicalJson, canonicalMembers } from './canonical.ts';
import { cleanPolicy, cleanRecord, cleanSandbox, plainness } from './clean-record.ts';
import type { RequestRecord } from './types.ts';

/** What the chain adds to a record. */
export interface ChainFields {
  readonly seq: number;
  readonly time: string;
  readonly prev: string;
}

/**
 * Serialises request records. The canonical text without `hash` is `head + tail`; the line is `head + "hash":"…", + tail`, in its
 * ASCII form when `isAscii` is false. Nearly every record holds only short strings that need no escape and goes through a fixed
 * template; all others are cleaned and serialised generically. The texts of `sandbox` and `policy` are remembered by identity:
 * what was handed over may not change afterwards, as their types say.
 */
export class RequestText {
  /** `{` up to where `"hash":` belongs; ends with a comma. */
  head = '';
  /** From `"id":` to `}`. */
  tail = '';
  /** False when `head` or `tail` holds something outside printable ASCII. */
  isAscii = true;

  readonly #node: string;
  readonly #nodeText: Known;
  readonly #redact: ((text: string) => string) | undefined;
  readonly #known = new WeakMap<object, Known>();
  #lastSandbox: object | null = null;
  #lastSandboxText = absent;
  #lastPolicy: object | null = null;
  #lastPolicyText = absent;

  /** `node` is well-formed and within its limit. */
  constructor(node: string, redact?: (text: string) => string) {
    this.#node = node;
    this.#nodeText = known(JSON.stringify(node));
    this.#redact = redact;
  }

  /** Fills `head`, `tail` and `isAscii`. */
  build(record: RequestRecord, chain: ChainFields): void {
    const plain = plainness(record);
    if (plain === 'no') this.#generic(record, chain);
    else this.#template(record, chain, plain === 'ascii');
  }

  /** Invariant: the record is plain, so that a string is its own JSON text. */
  #template(record: RequestRecord, chain: ChainFields, isAscii: boolean): void {
    const { conn, credential, request, response, upstream } = record;
    const sandbox = this.#sandbox(record.sandbox);
    const policy = this.#policy(record.policy);
    this.isAscii = isAscii && sandbox.isAscii && policy.isAscii && this.#nodeText.isAscii;
    this.head =
      `{"code":"${record.code}","conn":{"alpn":${orNull(conn.alpn)},"sni":${orNull(conn.sni)},"src":"${conn.src}"` +
      `,"tls":${orNull(conn.tls)},"via":"${conn.via}"},"credential":${credential === null ? 'null' : credentialText(credential)},`;
    this.tail =
      `"id":"${record.id}","kind":"${record.kind}","node":${this.#nodeText.text},"policy":${policy.text},"prev":"${chain.prev}"` +
      `,"raw":${orNull(record.raw)},"reason":"${record.reason}","redactions":${number(record.redactions)}` +
      `,"request":${request === null ? 'null' : requestText(request)}` +
      `,"response":${response === null ? 'null' : responseText(response)},"rule":${orNull(record.rule)}` +
      `,"sandbox":${sandbox.text},"seq":${chain.seq},"time":"${chain.time}"` +
      `,"upstream":${upstream === null ? 'null' : upstreamText(upstream)},"v":1,"verdict":"${record.verdict}"}`;
    // Every string stands in the text as it was: a secret would show in one of those a caller or an upstream chose.
    if (this.#redact === undefined) return;
    const outside = outsideText(record);
    if (this.#redact(outside) === outside) return;
    this.#generic(record, chain);
  }

  #generic(record: RequestRecord, chain: ChainFields): void {
    const { seq, time, prev } = chain;
    const members = canonicalMembers({ ...cleanRecord(record, this.#redact), seq, time, prev, v: 1, node: this.#node });
    const split = members.findIndex((member) => member > '"hash"');
    this.head = `{${members.slice(0, split).join(',')},`;
    this.tail = `${members.slice(split).join(',')}}`;
    this.isAscii = printableAscii.test(this.head) && printableAscii.test(this.tail);
  }

  #sandbox(sandbox: RequestRecord['sandbox']): Known {
    if (sandbox === null) return absent;
    if (sandbox !== this.#lastSandbox) {
      this.#lastSandboxText = this.#known.get(sandbox) ?? this.#learn(sandbox, cleanSandbox(sandbox, this.#redact));
      this.#lastSandbox = sandbox;
    }
    return this.#lastSandboxText;
  }

  #policy(policy: RequestRecord['policy']): Known {
    if (policy === null) return absent;
    if (policy !== this.#lastPolicy) {
      this.#lastPolicyText = this.#known.get(policy) ?? this.#learn(policy, cleanPolicy(policy, this.#redact));
      this.#lastPolicy = policy;
    }
    return this.#lastPolicyText;
  }

  /** Remembers the text of an object for as long as the object lives. */
  #learn(object: object, clean: object): Known {
    const text = known(canonicalJson(clean));
    this.#known.set(object, text);
    return text;
  }
}

interface Known {
  readonly text: string;
  readonly isAscii: boolean;
}

const printableAscii = /^[\x20-\x7e]*$/;
const absent: Known = { text: 'null', isAscii: true };

function known(text: string): Known {
  return { text, isAscii: printableAscii.test(text) };
}

/** What was not written by the operator or the gateway, apart by line ends, which no plain string holds. */
function outsideText({ reason, raw, conn, request }: RequestRecord): string {
  let text = reason;
  if (raw !== null) text += `\n${raw}`;
  if (conn.sni !== null) text += `\n${conn.sni}`;
  if (request === null) return text;
  text += `\n${request.method}\n${request.host}\n${request.path}`;
  return request.query === null ? text : `${text}\n${request.query}`;
}

function orNull(text: string | null): string {
  return text === null ? 'null' : `"${text}"`;
}

/** A measured value that went wrong must not cost the record: what JSON cannot say is null. */
function number(value: number): string {
  return Number.isFinite(value) ? `${value}` : 'null';
}

function requestText(request: NonNullable<RequestRecord['request']>): string {
  return (
    `{"bytes":${number(request.bytes)},"host":"${request.host}","method":"${request.method}","path":"${request.path}"` +
    `,"port":${number(request.port)},"query":${orNull(request.query)},"scheme":"${request.scheme}"}`
  );
}

function responseText(response: NonNullable<RequestRecord['response']>): string {
  return (
    `{"bytes":${number(response.bytes)},"durationMs":${number(response.durationMs)}` +
    `,"firstByteMs":${number(response.firstByteMs)},"status":${number(response.status)}}`
  );
}

function upstreamText(upstream: NonNullable<RequestRecord['upstream']>): string {
  return (
    `{"address":"${upstream.address}","certSha256":${orNull(upstream.certSha256)}` +
    `,"connectMs":${number(upstream.connectMs)},"tls":${orNull(upstream.tls)}}`
  );
}

function credentialText(credential: NonNullable<RequestRecord['credential']>): string {
  let slots = '';
  for (const slot of credential.slots) slots += slots === '' ? `"${slot}"` : `,"${slot}"`;
  return `{"name":"${credential.name}","slots":[${slots}],"version":"${credential.version}"}`;
}
