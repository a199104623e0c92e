/** Every way the gateway says no, with the status and words a caller gets; the body is the same on every protocol. */
import { STATUS_CODES } from 'node:http';
import type { AuditVerdict } from '../audit/types.ts';

export interface Refusal {
  readonly status: number;
  /** Stable; listed in gateway/README.md. */
  readonly code: string;
  readonly reason: string;
  readonly hint: string;
  readonly rule: string | null;
  /** How the audit record calls it: a decision (`deny`) or a fault (`error`). */
  readonly verdict: Extract<AuditVerdict, 'deny' | 'error'>;
  /** Further header lines, CRLF included. */
  readonly headers?: string;
}

/** A refusal by decision. */
export function deny(status: number, code: string, reason: string, hint = '', rule: string | null = null): Refusal {
  return { status, code, reason, hint, rule, verdict: 'deny' };
}

/** A refusal because something failed; as closed as a deny. */
export function fault(status: number, code: string, reason: string, hint = ''): Refusal {
  return { status, code, reason, hint, rule: null, verdict: 'error' };
}

export const refusals = {
  callerUnknown: {
    ...deny(
      407,
      'caller_unknown',
      'This proxy needs to know which sandbox asks.',
      'Use the proxy URL with the credential your sandbox was given.',
    ),
    headers: 'proxy-authenticate: Basic realm="sallyport"\r\n',
  },
  notAProxyRequest: deny(
    400,
    'not_a_proxy_request',
    'This is a proxy: the target must be an absolute URL, or the method CONNECT.',
    'Set HTTPS_PROXY and HTTP_PROXY to this address instead of calling it.',
  ),
  httpsAbsolute: deny(
    400,
    'https_needs_connect',
    'An https URL must be reached through CONNECT, so that nobody but its server and this gateway reads it.',
    'Use a client that speaks CONNECT for https.',
  ),
  schemeUnknown: deny(400, 'scheme_unknown', 'Only http and https URLs are forwarded.', 'Check the URL.'),
  userinfo: deny(
    400,
    'userinfo',
    'A URL with user information is not forwarded.',
    'Put credentials into a header, or let the policy inject them.',
  ),
  connectBody: deny(400, 'connect_body', 'CONNECT has no body.', 'Send the first bytes after the 200 answer.'),
  targetTooLong: deny(414, 'target_too_long', 'The request target is too long.', 'Send a shorter URL.'),
  headTooLarge: deny(431, 'head_too_large', 'The request head is too large.', 'Send fewer or shorter headers.'),
  headTimeout: deny(408, 'head_timeout', 'The request head did not arrive in time.', 'Send the whole head at once.'),
  upgradeRefused: deny(
    501,
    'upgrade_refused',
    'Protocol upgrades are not forwarded by this version.',
    'Use plain HTTP/1.1 requests.',
  ),
  optionsAsterisk: deny(403, 'options_asterisk', 'OPTIONS * names no resource a rule could allow.', 'Ask for a path.'),
  rawOnTunnel: deny(
    400,
    'protocol_refused',
    'The tunnel carries neither TLS nor HTTP/1.1.',
    'Only HTTP and HTTPS pass an http rule.',
  ),
  auditUnavailable: fault(
    503,
    'audit_unavailable',
    'The audit log takes no more records, so nothing is forwarded.',
    'Tell the operator: free disk space or a slower load is needed.',
  ),
  tooManyConnections: fault(
    503,
    'too_many_connections',
    'Too many connections are open.',
    'Close some, or try again shortly.',
  ),
  credentialUnavailable: fault(
    503,
    'credential_unavailable',
    'A credential bound to this request could not be opened, and it is not sent without.',
    'Tell the operator: `sallyport vault list` and the gateway log name the source.',
  ),
  internal: fault(
    500,
    'internal_error',
    'The gateway failed while judging this request, so it was refused.',
    'Report the request id.',
  ),
  stopping: fault(503, 'gateway_stopping', 'The gateway is stopping.', 'Try again shortly.'),
} as const satisfies Record<string, Refusal>;

/** Names disagree (RFC 9110 §15.5.20): nothing was sent. */
export function misdirected(what: string): Refusal {
  return deny(421, 'authority_mismatch', what, 'CONNECT name, TLS server name and Host must be the same.');
}

/** The JSON body of a refusal, the same through plain HTTP, TLS and CONNECT. */
export function refusalBody(refusal: Refusal, requestId: string): string {
  const error = {
    code: refusal.code,
    rule: refusal.rule,
    reason: refusal.reason,
    hint: refusal.hint,
    requestId,
  };
  return `${JSON.stringify({ error })}\n`;
}

/** A whole HTTP/1.1 answer. HEAD gets the head only (RFC 9110 §9.3.2). */
export function refusalResponse(
  refusal: Refusal,
  requestId: string,
  options: { close: boolean; head: boolean },
): Buffer {
  const body = refusalBody(refusal, requestId);
  const head =
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? 'Refused'}\r\n` +
    'content-type: application/json\r\n' +
    `content-length: ${Buffer.byteLength(body)}\r\n` +
    `x-sallyport-request-id: ${requestId}\r\n` +
    'cache-control: no-store\r\n' +
    (refusal.headers ?? '') +
    (options.close ? 'connection: close\r\n\r\n' : '\r\n');
  return Buffer.from(options.head ? head : head + body);
}
