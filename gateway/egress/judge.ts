/** Judges one request: names agree, target canonical, policy asked, credential slots and stand-ins checked. Nothing is sent before. */
import type { CompiledCredential, Decision, HttpFacts } from '../../policy/index.ts';
import { canonicalTarget, decide } from '../../policy/index.ts';
import { PLACEHOLDER_PREFIX } from '../../vault/index.ts';
import type { Caller, PolicyGeneration } from './callers.ts';
import type { EgressContext } from './context.ts';
import { bytesEqual, foldEquals, foldStartsWith } from './http/bytes.ts';
import { H } from './http/header-block.ts';
import type { RequestHead } from './http/request-head.ts';
import type { Refusal } from './refusal.ts';
import { deny, fault, misdirected, refusals } from './refusal.ts';
import type { Scope } from './scope.ts';
import { hostRefusal, malformed, parseAbsolute, sameDestination } from './scope.ts';

export interface Judged {
  readonly caller: Caller;
  readonly scope: Scope;
  readonly facts: HttpFacts;
  readonly decision: Decision;
  readonly generation: PolicyGeneration;
  /** Credentials to inject, in the policy's order. */
  readonly inject: readonly CompiledCredential[];
  /** The canonical request line with CRLF, latin1 bytes: what was judged is what is sent. */
  readonly requestLine: Buffer;
}

/** A refusal with as much of the request as could be read. */
export interface Rejected {
  readonly refusal: Refusal;
  readonly scope: Scope | null;
  readonly facts: HttpFacts | null;
}

const PREFIX = Buffer.from(PLACEHOLDER_PREFIX);

/** What a tunnel asked last and was allowed: agents repeat themselves, and the same question under the same policy has the same answer. */
export interface Memo {
  last: Judged | null;
  /** Its target as it was sent. */
  raw: Buffer;
}

/** `scope` is the tunnel's, with its `memo` and no `origin`, or the one of the absolute URL with `origin` as its origin-form and no memo. */
export function judge(
  context: EgressContext,
  caller: Caller,
  head: RequestHead,
  scope: Scope,
  origin: string | null,
  memo: Memo | null,
): Judged | Rejected {
  const refusing = caller.isSelfTest ? null : context.refusing();
  if (refusing !== null) return { refusal: selfTestRefusal(refusing), scope, facts: null };
  if (head.upgrade >= 0) return { refusal: refusals.upgradeRefused, scope, facts: null };
  const mismatch = checkHost(head, scope, memo !== null);
  if (mismatch !== null) return { refusal: mismatch, scope, facts: null };
  const generation = caller.policy.current;
  const last = memo?.last ?? null;
  if (memo !== null && last !== null && isSameQuestion(memo, last, generation, head))
    return withSlots(context, head, last);
  const form = origin ?? tunnelTarget(head, scope);
  if (typeof form !== 'string') return { refusal: form, scope, facts: null };
  const target = canonicalTarget(form);
  if (!target.ok) return { refusal: malformed(target), scope, facts: null };
  const { scheme, destination, port } = scope;
  const facts: HttpFacts = { scheme, destination, port, method: head.method, target: target.value };
  const decision = decide(generation?.compiled ?? null, facts);
  if (generation === null || decision.verdict !== 'allow') return { refusal: decisionRefusal(decision), scope, facts };
  const inject = decision.credentials;
  const judged = { caller, scope, facts, decision, generation, inject, requestLine: requestLine(facts) };
  if (memo !== null) {
    memo.last = judged;
    memo.raw = Buffer.from(head.target(), 'latin1');
  }
  return withSlots(context, head, judged);
}

function isSameQuestion(memo: Memo, last: Judged, generation: PolicyGeneration | null, head: RequestHead): boolean {
  return (
    last.generation === generation &&
    last.facts.method === head.method &&
    bytesEqual(head.buf, head.targetStart, head.targetEnd, memo.raw)
  );
}

/** Canonical, with CRLF. */
export function requestLine({ method, target }: HttpFacts): Buffer {
  const query = target.query === null ? '' : `?${target.query}`;
  return Buffer.from(`${method} ${target.path}${query} HTTP/1.1\r\n`, 'latin1');
}

/** The credentials of the decision are looked at for each head anew: what the client put into their slots differs. */
function withSlots(context: EgressContext, head: RequestHead, judged: Judged): Judged | Rejected {
  const inject = checkSlots(context, judged.caller, head, judged.decision.credentials);
  if ('status' in inject) return { refusal: inject, scope: judged.scope, facts: judged.facts };
  return inject === judged.inject ? judged : { ...judged, inject };
}

/** The origin-form of a tunnelled request's target; an absolute URL there must name the tunnel's own authority (H5). */
function tunnelTarget(head: RequestHead, scope: Scope): string | Refusal {
  const first = head.buf[head.targetStart];
  if (first === 47) return head.target();
  const target = head.target();
  if (target === '*') return refusals.optionsAsterisk;
  const absolute = parseAbsolute(target);
  if ('refusal' in absolute) return absolute.refusal;
  const same =
    absolute.scope.scheme === scope.scheme &&
    absolute.scope.port === scope.port &&
    sameDestination(absolute.scope.destination, scope.destination);
  return same
    ? absolute.origin
    : misdirected(`The target names ${absolute.scope.authority}, but the connection is for ${scope.authority}.`);
}

export function decisionRefusal(decision: Decision): Refusal {
  const status = decision.code === 'encoded_slash' || decision.code === 'double_encoding' ? 400 : 403;
  return deny(status, decision.code, decision.reason, decision.hint, decision.rule);
}

export function selfTestRefusal(why: string): Refusal {
  return fault(
    503,
    'selftest_failed',
    `The boundary self-test failed (${why}), so nothing is forwarded.`,
    'Tell the operator: `sallyport selftest` shows what got through.',
  );
}

function checkHost(head: RequestHead, scope: Scope, isTunnel: boolean): Refusal | null {
  if (head.host < 0) return null;
  const start = head.headers.valueStart[head.host] ?? 0;
  const end = head.headers.valueEnd[head.host] ?? 0;
  if (bytesEqual(head.buf, start, end, scope.authorityBytes)) return null;
  return hostRefusal(head.headers.value(head.buf, head.host), scope, isTunnel ? 421 : 400);
}

/** Which bound credentials are injected, after the client's own values in their slots and every stand-in were judged (C1, C3). */
function checkSlots(
  context: EgressContext,
  caller: Caller,
  head: RequestHead,
  credentials: readonly CompiledCredential[],
): readonly CompiledCredential[] | Refusal {
  const mentions = mentionsPlaceholder(head);
  if (credentials.length === 0) return mentions ? mismatch() : credentials;
  let kept: CompiledCredential[] | null = null;
  let expected = 0;
  for (const credential of credentials) {
    // Without any stand-in there is nothing to tell apart: whatever stands in the slot is overwritten.
    if (!mentions && credential.spec.onClientCredential === 'replace') continue;
    const slot = clientValues(head, credential.slot);
    if (slot.length === 0) continue;
    const placeholder = standIn(context, caller, credential.spec.name);
    for (const value of slot) {
      if (isPlaceholder(value, placeholder)) expected++;
      else if (value.includes(PLACEHOLDER_PREFIX)) return mismatch();
      else if (credential.spec.onClientCredential === 'deny') return clientCredential(credential);
      else if (credential.spec.onClientCredential === 'keep') kept ??= [...credentials];
    }
    if (kept !== null && slot.some((value) => !isPlaceholder(value, placeholder))) {
      kept = kept.filter((other) => other !== credential);
    }
  }
  if (mentions && countPlaceholders(head) > expected) return mismatch();
  return kept ?? credentials;
}

/** The caller's stand-in of a credential, kept so that a busy slot costs no HMAC for each request. */
function standIn(context: EgressContext, caller: Caller, name: string): string {
  const known = caller.standIns.get(name);
  if (known !== undefined) return known;
  const placeholder = context.placeholders.issue(caller.id, name);
  caller.standIns.set(name, placeholder);
  return placeholder;
}

/** Every value the client put into a slot. */
function clientValues(head: RequestHead, slot: string): string[] {
  const values: string[] = [];
  for (let i = 0; i < head.headers.count; i++) {
    if (isSlot(head, i, slot)) values.push(head.headers.value(head.buf, i));
  }
  return values;
}

/** Line `index` carries the slot's name (lower-case); `_` counts as `-`, since CGI and WSGI make both the same variable. */
export function isSlot(head: RequestHead, index: number, slot: string): boolean {
  if (slot === 'authorization') return head.headers.id[index] === H.AUTHORIZATION;
  const start = head.headers.nameStart[index] ?? 0;
  const end = head.headers.nameEnd[index] ?? 0;
  return foldEquals(head.buf, start, end, slot.replaceAll('_', '-'));
}

/** The stand-in alone, after a scheme word, or inside Basic as the password. */
function isPlaceholder(value: string, placeholder: string): boolean {
  return value === placeholder || value.endsWith(` ${placeholder}`) || decodeBasic(value).includes(placeholder);
}

function decodeBasic(value: string): string {
  const encoded = /^basic +([a-z0-9+/]+={0,2})$/i.exec(value)?.[1];
  return encoded === undefined ? '' : Buffer.from(encoded, 'base64').toString('latin1');
}

function mentionsPlaceholder(head: RequestHead): boolean {
  if (basicPlaceholders(head) > 0) return true;
  if (!head.hasUnderscore) return false;
  const found = head.buf.indexOf(PREFIX, head.start);
  return found >= 0 && found < head.end;
}

function countPlaceholders(head: RequestHead): number {
  let count = basicPlaceholders(head);
  for (
    let pos = head.buf.indexOf(PREFIX, head.start);
    pos >= 0 && pos < head.end;
    pos = head.buf.indexOf(PREFIX, pos + 1)
  )
    count++;
  return count;
}

/** Authorization lines that hide a stand-in in their Basic value. */
function basicPlaceholders(head: RequestHead): number {
  let count = 0;
  for (let i = 0; i < head.headers.count; i++) {
    if (head.headers.id[i] !== H.AUTHORIZATION) continue;
    const start = head.headers.valueStart[i] ?? 0;
    if (!foldStartsWith(head.buf, start, head.headers.valueEnd[i] ?? 0, 'basic')) continue;
    if (decodeBasic(head.headers.value(head.buf, i)).includes(PLACEHOLDER_PREFIX)) count++;
  }
  return count;
}

function mismatch(): Refusal {
  return deny(
    403,
    'credential_mismatch',
    'The request carries the stand-in of a credential that is not bound to it.',
    'Send a stand-in only in the header, and to the hosts, methods and paths, its credential is bound to.',
  );
}

function clientCredential(credential: CompiledCredential): Refusal {
  return deny(
    403,
    'client_credential_refused',
    `The gateway fills ${credential.slot} for this request; a value of the client's own is not forwarded.`,
    `Leave ${credential.slot} out, or send the stand-in of ${credential.spec.name}.`,
  );
}
