/** Turns what happened on a connection into the audit log's record. */

import type { HttpFacts } from '../../policy/index.ts';
import type { Redactor } from '../../vault/index.ts';
import { redactQuery } from '../../vault/index.ts';
import type { AuditVerdict, RequestRecord } from '../audit/types.ts';
import type { Caller, PolicyGeneration } from './callers.ts';
import { nameOf } from './dialer.ts';
import { withoutUserinfo } from './raw-evidence.ts';
import type { Refusal } from './refusal.ts';
import type { Scope } from './scope.ts';

export interface RecordInput {
  readonly kind: RequestRecord['kind'];
  readonly id: string;
  readonly caller: Caller | null;
  readonly generation: PolicyGeneration | null;
  readonly verdict: AuditVerdict;
  readonly rule: string | null;
  readonly code: string;
  readonly reason: string;
  readonly conn: RequestRecord['conn'];
  readonly request: RequestRecord['request'];
  readonly raw?: string | null;
  readonly upstream?: RequestRecord['upstream'];
  readonly response?: RequestRecord['response'];
  readonly credential?: RequestRecord['credential'];
  readonly redactions?: number;
}

export function makeRecord(input: RecordInput): RequestRecord {
  return {
    kind: input.kind,
    id: input.id,
    sandbox: input.caller === null ? null : input.caller.info,
    policy: input.generation === null ? null : input.generation.info,
    verdict: input.verdict,
    rule: input.rule,
    code: input.code,
    reason: input.reason,
    conn: input.conn,
    request: input.request,
    raw: input.raw ?? null,
    upstream: input.upstream ?? null,
    response: input.response ?? null,
    credential: input.credential ?? null,
    redactions: input.redactions ?? 0,
  };
}

/** The request as judged: canonical host and path, query keys without values. */
export function requestOf(facts: HttpFacts, bytes: number, redactor: Redactor): NonNullable<RequestRecord['request']> {
  const { scheme, destination, port, method, target } = facts;
  return {
    method,
    scheme,
    host: nameOf(destination),
    port,
    path: target.path,
    query: target.query === null ? null : redactQuery(target.query, redactor),
    bytes,
  };
}

/** A request that was refused before it had a canonical form: as sent, the query without values. */
export function requestAsSent(
  method: string,
  scope: Scope | null,
  target: string,
  redactor: Redactor,
): RequestRecord['request'] {
  if (method === '') return null;
  const cut = target.indexOf('?');
  return {
    method,
    scheme: scope?.scheme ?? 'http',
    host: scope === null ? '' : nameOf(scope.destination),
    port: scope?.port ?? 0,
    path: withoutUserinfo(cut < 0 ? target : target.slice(0, cut)),
    query: cut < 0 ? null : redactQuery(target.slice(cut + 1), redactor),
    bytes: 0,
  };
}

export function refusalRecord(refusal: Refusal): Pick<RecordInput, 'verdict' | 'rule' | 'code' | 'reason'> {
  return { verdict: refusal.verdict, rule: refusal.rule, code: refusal.code, reason: refusal.reason };
}
