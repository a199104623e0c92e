/** The one canonical form of `host[:port]` as it stands in Host, CONNECT and absolute-form targets. */
import { MAX_AUTHORITY_LENGTH } from './bounds.ts';
import { canonical, failure } from './canonical.ts';
import { canonicalHost } from './host.ts';
import type { Canonical, Destination } from './types.ts';

export interface Authority {
  readonly destination: Destination;
  /** 1..65535 */
  readonly port: number;
  /** Whether the port was written out. */
  readonly explicitPort: boolean;
}

/** `defaultPort` null means that a port must be written (CONNECT, RFC 9110 section 9.3.6). IPv6 needs its brackets here. */
export function canonicalAuthority(raw: string, defaultPort: number | null): Canonical<Authority> {
  if (raw.length > MAX_AUTHORITY_LENGTH) {
    return failure('host_too_long', `The authority is longer than ${MAX_AUTHORITY_LENGTH} characters.`);
  }
  if (raw.includes('@')) {
    return failure('authority_userinfo', 'The authority holds user information; who asks is not said in a URL.');
  }
  const colon = portColon(raw);
  const host = canonicalHost(colon < 0 ? raw : raw.slice(0, colon));
  if (!host.ok) {
    return host;
  }
  if (colon < 0) {
    return defaultPort === null
      ? failure('authority_port_missing', 'The authority must name a port.')
      : canonical({ destination: host.value, port: defaultPort, explicitPort: false });
  }
  const port = readPort(raw, colon + 1);
  if (port === 0) {
    return failure('authority_port', 'The port must be digits for a number from 1 to 65535.');
  }
  return canonical({ destination: host.value, port, explicitPort: true });
}

/** Where the port's colon stands, -1 without one. A bare IPv6 address is split at its first colon, and so refused. */
function portColon(raw: string): number {
  if (!raw.startsWith('[')) {
    return raw.indexOf(':');
  }
  const bracket = raw.indexOf(']');
  return bracket >= 0 && raw.charCodeAt(bracket + 1) === 58 ? bracket + 1 : -1;
}

/** The port number, or 0 when the text from `start` is none. */
function readPort(raw: string, start: number): number {
  const digits = raw.length - start;
  if (digits < 1 || digits > 5) {
    return 0;
  }
  let port = 0;
  for (let index = start; index < raw.length; index += 1) {
    const code = raw.charCodeAt(index);
    if (code < 48 || code > 57) {
      return 0;
    }
    port = port * 10 + code - 48;
  }
  return port > 65535 ? 0 : port;
}
