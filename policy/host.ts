/** The one canonical form of a host as it comes over the wire. */
import { formatAddress, formatIpv4, readAddress } from './address.ts';
import { MAX_HOST_LENGTH, MAX_LABEL_LENGTH } from './bounds.ts';
import { canonical, failure } from './canonical.ts';
import { decodePunycode } from './punycode.ts';
import type { Canonical, CanonicalFailure, Destination } from './types.ts';

/**
 * Host part only, no port; IPv6 bare or in brackets. Names come back as lower-case labels without the root dot. Every
 * spelling that inet_aton takes for an IPv4 address becomes its dotted quad (WHATWG URL, "ends in a number"), because a
 * resolver further on would take it for one. Non-ASCII is refused: a wire host is A-labels.
 */
export function canonicalHost(raw: string): Canonical<Destination> {
  if (isPlainName(raw)) {
    return canonical({ kind: 'name', name: raw });
  }
  if (raw === '') {
    return failure('host_empty', 'The host is empty.');
  }
  // One more than a name may have, for the root dot.
  if (raw.length > MAX_HOST_LENGTH + 1) {
    return failure('host_too_long', `The host is longer than ${MAX_HOST_LENGTH} characters.`);
  }
  if (raw.startsWith('[') || raw.includes(':')) {
    return canonicalIpv6(raw);
  }
  const refused = refuseCharacters(raw);
  if (refused !== null) {
    return refused;
  }
  const lower = raw.toLowerCase();
  return canonicalName(lower.endsWith('.') ? lower.slice(0, -1) : lower);
}

/** Whether a name is lower-case labels that need no second look. Most hosts are, and pay one pass without allocation. */
function isPlainName(raw: string): boolean {
  const { length } = raw;
  if (length === 0 || length > MAX_HOST_LENGTH) {
    return false;
  }
  let labelStart = 0;
  for (let index = 0; index < length; index += 1) {
    const code = raw.charCodeAt(index);
    if (code >= 97 && code <= 122) {
      continue;
    }
    if (code === 46) {
      if (index === labelStart || index - labelStart > MAX_LABEL_LENGTH || raw.charCodeAt(index - 1) === 45) {
        return false;
      }
      labelStart = index + 1;
    } else if (code === 45) {
      // A leading hyphen is malformed, and two in a row may be an A-label: both go the long way.
      if (index === labelStart || raw.charCodeAt(index - 1) === 45) {
        return false;
      }
    } else if (!(code >= 48 && code <= 57) && code !== 95) {
      return false;
    }
  }
  // A last label that starts with a digit may be a number (0x7f), which is an address.
  return (
    raw.charCodeAt(labelStart) > 57 && length - labelStart <= MAX_LABEL_LENGTH && raw.charCodeAt(length - 1) !== 45
  );
}

function refuseCharacters(raw: string): CanonicalFailure | null {
  if (/[^\x00-\x7f]/.test(raw)) {
    return failure('host_not_ascii', 'The host holds non-ASCII characters; send it as A-labels (xn--…).');
  }
  if (!/^[0-9A-Za-z._-]*$/.test(raw)) {
    return failure('host_malformed', 'The host holds a character that no host name has.');
  }
  return null;
}

/** `name` is lower-case letters, digits, hyphens, underscores and dots, without the root dot. */
function canonicalName(name: string): Canonical<Destination> {
  if (name.length > MAX_HOST_LENGTH) {
    return failure('host_too_long', `The host is longer than ${MAX_HOST_LENGTH} characters.`);
  }
  const labels = name.split('.');
  for (const label of labels) {
    const refused = refuseLabel(label);
    if (refused !== null) {
      return refused;
    }
  }
  const last = labels[labels.length - 1] ?? '';
  if (/^(?:[0-9]+|0x[0-9a-f]*)$/.test(last)) {
    return canonicalNumbers(labels);
  }
  return canonical({ kind: 'name', name });
}

function refuseLabel(label: string): CanonicalFailure | null {
  if (label === '') {
    return failure('host_label', 'The host has an empty label.');
  }
  if (label.length > MAX_LABEL_LENGTH) {
    return failure('host_label', `The host has a label longer than ${MAX_LABEL_LENGTH} characters.`);
  }
  if (label.startsWith('-') || label.endsWith('-')) {
    return failure('host_label', 'The host has a label that starts or ends with a hyphen.');
  }
  if (label.startsWith('xn--') && !isValidALabel(label)) {
    return failure('host_punycode', 'The host has a label with xn-- that is not valid punycode of a normalized label.');
  }
  return null;
}

/**
 * Beyond RFC 3492: the text must be what IDNA (UTS 46) would have produced it from. NFKC and lower case reject what it maps
 * away (full-width letters, ligatures, upper case); controls, spaces, unassigned code points and
 * a leading combining mark have no place in a name. The joiners U+200C and U+200D have, in some scripts.
 */
function isValidALabel(label: string): boolean {
  const text = decodePunycode(label.slice(4));
  if (text === null) {
    return false;
  }
  return (
    text.normalize('NFKC') === text &&
    text.toLowerCase() === text &&
    !/^\p{M}|[\p{Cc}\p{Cn}\p{Co}\p{Cs}\p{Z}]|(?![\u200c\u200d])\p{Cf}/u.test(text)
  );
}

/** inet_aton: one to four numbers, each decimal, octal (0…) or hexadecimal (0x…); the last fills the bytes left. */
function canonicalNumbers(labels: readonly string[]): Canonical<Destination> {
  const malformed = failure('host_ipv4', 'The host ends in a number but is not an IPv4 address.');
  if (labels.length > 4) {
    return malformed;
  }
  let value = 0;
  for (const [index, label] of labels.entries()) {
    const number = readNumber(label);
    const isLast = index === labels.length - 1;
    const limit = isLast ? 256 ** (5 - labels.length) : 256;
    if (number === null || number >= limit) {
      return malformed;
    }
    value += isLast ? number : number * 256 ** (3 - index);
  }
  return canonical({ kind: 'address', address: formatIpv4(value) });
}

function readNumber(label: string): number | null {
  if (/^0x[0-9a-f]*$/.test(label)) {
    return label === '0x' ? 0 : Number(label);
  }
  if (/^0[0-7]+$/.test(label)) {
    return Number.parseInt(label, 8);
  }
  return /^(?:0|[1-9][0-9]*)$/.test(label) ? Number(label) : null;
}

function canonicalIpv6(raw: string): Canonical<Destination> {
  const isBracketed = raw.startsWith('[');
  if (isBracketed && !raw.endsWith(']')) {
    return failure('host_ipv6', 'The host opens a bracket that it does not close.');
  }
  const text = isBracketed ? raw.slice(1, -1) : raw;
  if (text.includes('%')) {
    return failure('host_zone', 'The host holds an IPv6 zone id, which has no meaning beyond one machine.');
  }
  const address = text.includes(':') ? readAddress(text) : null;
  if (address === null) {
    return failure('host_ipv6', 'The host is not an IPv6 address.');
  }
  return canonical({ kind: 'address', address: formatAddress(address) });
}
