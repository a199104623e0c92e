/** Hosts as a policy file writes them, and whether a destination is meant by one. */
import { domainToASCII } from 'node:url';
import { MAX_POLICY_HOST_LENGTH } from './bounds.ts';
import { canonical, failure } from './canonical.ts';
import { canonicalHost } from './host.ts';
import type { Canonical, Destination } from './types.ts';

export type HostPattern =
  | { readonly kind: 'exact'; readonly name: string }
  /** `*.suffix`: one or more labels below the suffix, never the suffix itself. */
  | { readonly kind: 'below'; readonly suffix: string }
  /** `**`: every destination, raw addresses included. For deny rules only; the loader and `compile` see to that. */
  | { readonly kind: 'any' };

/**
 * Reads `api.x.com`, `*.x.com` or `**`. Whether a wildcard stands right above a public suffix is judged by the loader.
 */
export function parseHostPattern(raw: string): Canonical<HostPattern> {
  if (raw === '**') {
    return canonical({ kind: 'any' });
  }
  if (raw === '*' || raw === '*.' || raw === '.') {
    return failure(
      'host_pattern_wide',
      'This would mean every host; name the hosts, or *.example.com for all below one.',
    );
  }
  const isBelow = raw.startsWith('*.');
  const rest = isBelow ? raw.slice(2) : raw;
  if (rest.includes('*')) {
    return failure('host_pattern_wildcard', 'A wildcard stands for whole labels at the front only: *.example.com.');
  }
  const host = policyHost(rest);
  if (!host.ok) {
    return host;
  }
  if (host.value.kind === 'address') {
    return failure('host_pattern_address', `An address is not a host name; use cidrs: [${host.value.address}].`);
  }
  const { name } = host.value;
  return canonical(isBelow ? { kind: 'below', suffix: name } : { kind: 'exact', name });
}

/** A host as a policy file may write it: Unicode (with any of IDNA's dots) becomes A-labels (UTS 46), the rest is wire form. */
export function policyHost(raw: string): Canonical<Destination> {
  if (/^[!-~]*$/.test(raw)) {
    return canonicalHost(raw);
  }
  if (raw.length > MAX_POLICY_HOST_LENGTH) {
    return failure('host_too_long', `The host is longer than ${MAX_POLICY_HOST_LENGTH} characters.`);
  }
  // The URL parser behind domainToASCII would cut at these or decode them.
  if (/[\x00-\x7f]/.test(raw.replace(/[0-9A-Za-z._-]/g, ''))) {
    return failure('host_malformed', 'The host holds a character that no host name has.');
  }
  const ascii = domainToASCII(raw);
  if (ascii === '') {
    return failure('host_malformed', 'The host cannot be written in A-labels.');
  }
  return canonicalHost(ascii);
}

/** The canonical text of a pattern; parsing it gives the same pattern again. */
export function formatHostPattern(pattern: HostPattern): string {
  switch (pattern.kind) {
    case 'any':
      return '**';
    case 'below':
      return `*.${pattern.suffix}`;
    case 'exact':
      return pattern.name;
    default:
      return pattern satisfies never;
  }
}

/** Whether the pattern means the destination. Matching is on whole labels; names never match raw addresses. */
export function matchesHost(pattern: HostPattern, destination: Destination): boolean {
  if (pattern.kind === 'any') {
    return true;
  }
  if (destination.kind === 'address') {
    return false;
  }
  const { name } = destination;
  if (pattern.kind === 'exact') {
    return name === pattern.name;
  }
  const start = name.length - pattern.suffix.length;
  return start > 1 && name.charCodeAt(start - 1) === 46 && name.endsWith(pattern.suffix);
}
