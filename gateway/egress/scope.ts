/** Where the requests of a connection go: fixed by CONNECT for a tunnel, taken from each absolute URL on the plain proxy. */
import type { CanonicalFailure, Destination, Scheme } from '../../policy/index.ts';
import { canonicalAuthority } from '../../policy/index.ts';
import { hostPort, nameOf } from './dialer.ts';
import type { Refusal } from './refusal.ts';
import { deny, misdirected, refusals } from './refusal.ts';

export interface Scope {
  readonly scheme: Scheme;
  readonly destination: Destination;
  readonly port: number;
  /** The one Host value that is sent: canonical name, port only when it is not the scheme's. */
  readonly authority: string;
  readonly authorityBytes: Buffer;
}

export function defaultPort(scheme: Scheme): number {
  return scheme === 'https' ? 443 : 80;
}

export function createScope(scheme: Scheme, destination: Destination, port: number): Scope {
  const name = nameOf(destination);
  const bare = name.includes(':') ? `[${name}]` : name;
  const authority = port === defaultPort(scheme) ? bare : hostPort(name, port);
  return { scheme, destination, port, authority, authorityBytes: Buffer.from(authority, 'latin1') };
}

export function sameDestination(a: Destination, b: Destination): boolean {
  return a.kind === b.kind && nameOf(a) === nameOf(b);
}

/** An absolute-form target split into its scope and its origin-form rest, or why not (RFC 9112 §3.2.2). */
export type AbsoluteTarget = { readonly scope: Scope; readonly origin: string } | { readonly refusal: Refusal };

export function parseAbsolute(target: string): AbsoluteTarget {
  const match = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)(.*)$/i.exec(target);
  if (match === null) return { refusal: refusals.notAProxyRequest };
  const scheme = match[1]?.toLowerCase();
  const rest = match[3] ?? '';
  if (scheme !== 'http' && scheme !== 'https') return { refusal: refusals.schemeUnknown };
  const authority = canonicalAuthority(match[2] ?? '', defaultPort(scheme));
  if (!authority.ok) return { refusal: malformed(authority) };
  const origin = rest.startsWith('/') ? rest : `/${rest}`;
  return { scope: createScope(scheme, authority.value.destination, authority.value.port), origin };
}

export function malformed(failure: CanonicalFailure): Refusal {
  return deny(failure.status, failure.code, failure.reason, 'Send the name, port and path in their plain form.');
}

/** Why a Host value does not belong to the scope, or null. A port left out means the scheme's default (H8). */
export function hostRefusal(value: string, scope: Scope, status: 400 | 421): Refusal | null {
  const host = canonicalAuthority(value, defaultPort(scope.scheme));
  if (!host.ok) return malformed(host);
  if (sameDestination(host.value.destination, scope.destination) && host.value.port === scope.port) return null;
  const what = `Host names ${hostPort(nameOf(host.value.destination), host.value.port)}, but the connection is for ${hostPort(nameOf(scope.destination), scope.port)}.`;
  return status === 421 ? misdirected(what) : deny(400, 'host_mismatch', what, 'Host must name the host of the URL.');
}
