/** IPv4 and IPv6 addresses and CIDR blocks: one strict parser from text, one canonical text (RFC 5952). */
import { canonical, failure } from './canonical.ts';
import type { Canonical } from './types.ts';

export interface AddressV4 {
  readonly family: 4;
  /** Unsigned 32 bits. */
  readonly value: number;
}

export interface AddressV6 {
  readonly family: 6;
  /** Four unsigned 32-bit words, most significant first. */
  readonly words: readonly [number, number, number, number];
}

/** An address as numbers. Invariant: an IPv4-mapped IPv6 address is held as its IPv4. */
export type Address = AddressV4 | AddressV6;

/** A block of addresses. Invariant: no host bits are set. */
export interface Cidr {
  readonly base: Address;
  /** 0..32 or 0..128. */
  readonly prefix: number;
}

/**
 * Reads an address written strictly: dotted quad without leading zeros, or RFC 4291 text without brackets and zone id.
 * The looser inet_aton forms are `canonicalHost`'s business.
 */
export function parseAddress(text: string): Canonical<Address> {
  const address = readAddress(text);
  if (address === null) {
    return failure('address_malformed', 'Not an IPv4 dotted quad or an IPv6 address.');
  }
  return canonical(address);
}

/** Reads `address/prefix`, or an address alone as the block of just itself. Host bits that are set are an error. */
export function parseCidr(text: string): Canonical<Cidr> {
  const slash = text.indexOf('/');
  const address = readAddress(slash < 0 ? text : text.slice(0, slash));
  if (address === null) {
    return failure('cidr_malformed', 'Not an IPv4 or IPv6 block such as 140.82.112.0/20 or 2001:db8::/32.');
  }
  const isMapped = address.family === 4 && text.includes(':');
  const bits = address.family === 4 && !isMapped ? 32 : 128;
  const digits = slash < 0 ? String(bits) : text.slice(slash + 1);
  if (!/^(?:0|[1-9][0-9]{0,2})$/.test(digits) || Number(digits) > bits) {
    return failure('cidr_malformed', `The prefix length must be a number from 0 to ${bits}.`);
  }
  const prefix = isMapped ? Number(digits) - 96 : Number(digits);
  if (prefix < 0) {
    return failure('cidr_malformed', 'A block of IPv4-mapped addresses is written as its IPv4 block.');
  }
  const base = maskAddress(address, prefix);
  if (!sameAddress(base, address)) {
    return failure(
      'cidr_host_bits',
      `The address has bits beyond its prefix; did you mean ${formatCidr({ base, prefix })}?`,
    );
  }
  return canonical({ base, prefix });
}

/** Like {@link parseAddress} with null for text that is no address; the form for hot paths. */
export function readAddress(text: string): Address | null {
  // 45 is the longest text form: IPv6 with an embedded dotted quad.
  if (text.length < 2 || text.length > 45) {
    return null;
  }
  if (text.includes(':')) {
    return readIpv6(text);
  }
  const value = readDottedQuad(text, 0);
  return value < 0 ? null : { family: 4, value };
}

/** Canonical text: dotted quad, or RFC 5952 (lower case, longest run of zero groups shortened, no embedded dotted quad). */
export function formatAddress(address: Address): string {
  return address.family === 4 ? formatIpv4(address.value) : formatIpv6(address.words);
}

export function formatCidr(cidr: Cidr): string {
  return `${formatAddress(cidr.base)}/${cidr.prefix}`;
}

export function formatIpv4(value: number): string {
  return `${value >>> 24}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.${value & 255}`;
}

/** Whether the block holds the address; blocks of one family never hold the other's addresses. */
export function cidrContains(cidr: Cidr, address: Address): boolean {
  if (cidr.base.family === 4) {
    return address.family === 4 && maskWord(address.value, cidr.prefix) === cidr.base.value;
  }
  if (address.family === 4) {
    return false;
  }
  const { words } = cidr.base;
  return words.every((word, index) => maskWord(address.words[index] ?? 0, cidr.prefix - 32 * index) === word);
}

export function sameAddress(one: Address, other: Address): boolean {
  if (one.family === 4) {
    return other.family === 4 && one.value === other.value;
  }
  return other.family === 6 && one.words.every((word, index) => word === other.words[index]);
}

/** The address with every bit past `prefix` cleared. */
export function maskAddress(address: Address, prefix: number): Address {
  if (address.family === 4) {
    return { family: 4, value: maskWord(address.value, prefix) };
  }
  const [a, b, c, d] = address.words;
  return {
    family: 6,
    words: [maskWord(a, prefix), maskWord(b, prefix - 32), maskWord(c, prefix - 64), maskWord(d, prefix - 96)],
  };
}

function maskWord(word: number, prefix: number): number {
  if (prefix <= 0) {
    return 0;
  }
  return prefix >= 32 ? word : (word & (-1 << (32 - prefix))) >>> 0;
}

/** The value of the dotted quad from `start` to the end of the text, or -1. Leading zeros are refused: octal elsewhere. */
function readDottedQuad(text: string, start: number): number {
  let value = 0;
  let octet = -1;
  let octets = 0;
  for (let index = start; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === 46) {
      if (octet < 0 || octets === 3) {
        return -1;
      }
      value = value * 256 + octet;
      octets += 1;
      octet = -1;
      continue;
    }
    if (code < 48 || code > 57 || octet === 0) {
      return -1;
    }
    octet = octet < 0 ? code - 48 : octet * 10 + code - 48;
    if (octet > 255) {
      return -1;
    }
  }
  return octets === 3 && octet >= 0 ? value * 256 + octet : -1;
}

function readIpv6(text: string): Address | null {
  const gap = text.indexOf('::');
  const head: number[] = [];
  if (gap < 0) {
    return readGroups(text, head, true) && head.length === 8 ? fromGroups(head) : null;
  }
  const tail: number[] = [];
  // An embedded dotted quad stands at the end only; `1.2.3.4::` would put it in the middle.
  if (!readGroups(text.slice(0, gap), head, false) || !readGroups(text.slice(gap + 2), tail, true)) {
    return null;
  }
  const zeros = 8 - head.length - tail.length;
  return zeros < 1 ? null : fromGroups([...head, ...Array<number>(zeros).fill(0), ...tail]);
}

function readGroups(text: string, groups: number[], mayEndInQuad: boolean): boolean {
  if (text === '') {
    return true;
  }
  const parts = text.split(':');
  for (const [index, part] of parts.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(part)) {
      groups.push(Number.parseInt(part, 16));
      continue;
    }
    const quad = mayEndInQuad && index === parts.length - 1 ? readDottedQuad(part, 0) : -1;
    if (quad < 0) {
      return false;
    }
    groups.push(quad >>> 16, quad & 0xffff);
  }
  return groups.length <= 8;
}

function fromGroups(groups: readonly number[]): Address {
  const word = (index: number): number => (groups[index] ?? 0) * 65536 + (groups[index + 1] ?? 0);
  const words: AddressV6['words'] = [word(0), word(2), word(4), word(6)];
  if (words[0] === 0 && words[1] === 0 && words[2] === 0xffff) {
    return { family: 4, value: words[3] };
  }
  return { family: 6, words };
}

function formatIpv6(words: AddressV6['words']): string {
  const groups = words.flatMap((word) => [word >>> 16, word & 0xffff]);
  let start = -1;
  // RFC 5952 section 4.2.2: a single zero group is not shortened; the first of equal runs is.
  let length = 1;
  for (let index = 0; index < 8; index += 1) {
    let end = index;
    while (end < 8 && groups[end] === 0) {
      end += 1;
    }
    if (end - index > length) {
      start = index;
      length = end - index;
    }
    index = Math.max(index, end - 1);
  }
  const hex = groups.map((group) => group.toString(16));
  if (start < 0) {
    return hex.join(':');
  }
  return `${hex.slice(0, start).join(':')}::${hex.slice(start + length).join(':')}`;
}
