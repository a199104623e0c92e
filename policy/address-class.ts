/** What kind of address an address is, with every IPv4 hidden inside an IPv6 address taken out and judged too. */
import {
  type Address,
  type AddressV6,
  type Cidr,
  cidrContains,
  maskAddress,
  parseCidr,
  readAddress,
  sameAddress,
} from './address.ts';
import type { AddressClass } from './types.ts';

/**
 * The class of an address written as canonical text. When IPv4 addresses are embedded in an IPv6 address, the worst class
 * of all of them wins. Text that is no address is `reserved`, which is refused.
 * `own` lists addresses or blocks of this gateway and its node; it is read once and must not be changed afterwards.
 */
export function classifyAddress(text: string, own: readonly string[] = []): AddressClass {
  const address = readAddress(text);
  if (address === null) {
    return 'reserved';
  }
  return addressForms(address)
    .map((form) => classOf(form, own))
    .reduce(worse);
}

/** The address itself and every IPv4 address embedded in it (RFC 4291, 6052, 8215, 3056, 4380, 5214, 2765). */
export function addressForms(address: Address): Address[] {
  return address.family === 4 ? [address] : [address, ...embeddedIpv4(address)];
}

/** The class of exactly this address, embedded ones left aside. */
export function classOf(address: Address, own: readonly string[]): AddressClass {
  if (own.length > 0 && isOwn(address, own)) {
    // Metadata stays the more telling answer where a cloud puts it on the host itself.
    return tableClass(address) === 'metadata' ? 'metadata' : 'own';
  }
  return tableClass(address);
}

/** The class that refuses more. */
export function worse(one: AddressClass, other: AddressClass): AddressClass {
  return severity.indexOf(one) <= severity.indexOf(other) ? one : other;
}

/** Whether every address of the block is private space (RFC 1918, CGNAT, ULA): all that `allowPrivate` may open. */
export function isPrivateCidr(cidr: Cidr): boolean {
  return privateBlocks.some((block) => cidr.prefix >= block.prefix && cidrContains(block, cidr.base));
}

const severity: readonly AddressClass[] = [
  'metadata',
  'own',
  'loopback',
  'link_local',
  'unspecified',
  'multicast',
  'broadcast',
  'reserved',
  'documentation',
  'benchmark',
  'private',
  'public',
];

function block(text: string): Cidr {
  const cidr = parseCidr(text);
  if (!cidr.ok) {
    throw new TypeError(`Cannot read the built-in block ${text}: ${cidr.reason}`);
  }
  return cidr.value;
}

const privateBlocks: readonly Cidr[] = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  'fc00::/7',
].map(block);

type ClassRow = readonly [AddressClass, Cidr];

function rows(addressClass: AddressClass, blocks: readonly string[]): ClassRow[] {
  return blocks.map((text): ClassRow => [addressClass, block(text)]);
}

/** First match wins: metadata addresses lie inside link-local, CGNAT, ULA and public blocks. */
const tableV4: readonly ClassRow[] = [
  // AWS, GCP, Azure and most others; ECS task roles; EKS pod identity; Scaleway; Tencent; Alibaba; Azure host; Oracle.
  ...rows('metadata', [
    '169.254.169.254/32',
    '169.254.170.2/32',
    '169.254.170.23/32',
    '169.254.42.42/32',
    '169.254.0.23/32',
    '100.100.100.200/32',
    '168.63.129.16/32',
    '192.0.0.192/32',
  ]),
  ...rows('unspecified', ['0.0.0.0/32']),
  ...rows('loopback', ['127.0.0.0/8']),
  ...rows('link_local', ['169.254.0.0/16']),
  ...rows('broadcast', ['255.255.255.255/32']),
  ...rows('multicast', ['224.0.0.0/4']),
  // RFC 6890: this network, IETF protocol assignments, the retired 6to4 relay, future use.
  ...rows('reserved', ['0.0.0.0/8', '192.0.0.0/24', '192.88.99.0/24', '240.0.0.0/4']),
  ...rows('documentation', ['192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24']),
  ...rows('benchmark', ['198.18.0.0/15']),
  ...rows('private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10']),
];

/** The rows that concern each first octet: for most addresses none. */
const rowsByOctet: readonly (readonly ClassRow[])[] = Array.from({ length: 256 }, (_, octet) =>
  tableV4.filter(([, { base, prefix }]) => {
    const first = maskAddress({ family: 4, value: octet * 2 ** 24 }, Math.min(prefix, 8));
    return sameAddress(first, maskAddress(base, Math.min(prefix, 8)));
  }),
);

const tableV6: readonly ClassRow[] = [
  // AWS keeps all its instance services in fd00:ec2::/32; GCP; Scaleway; Oracle.
  ...rows('metadata', ['fd00:ec2::/32', 'fd20:ce::254/128', 'fd00:42::42/128', 'fd00:c1::a9fe:a9fe/128']),
  ...rows('unspecified', ['::/128']),
  ...rows('loopback', ['::1/128']),
  ...rows('link_local', ['fe80::/10']),
  ...rows('multicast', ['ff00::/8']),
  ...rows('private', ['fc00::/7']),
  ...rows('documentation', ['2001:db8::/32', '3fff::/20']),
  ...rows('benchmark', ['2001:2::/48']),
  // Teredo is judged by the addresses inside it; the rest of 2001::/23 is protocol assignments (RFC 6890).
  ...rows('public', ['64:ff9b::/96', '2001::/32']),
  ...rows('reserved', ['2001::/23']),
  ...rows('public', ['2000::/3']),
];

function tableClass(address: Address): AddressClass {
  if (address.family === 4) {
    return rowsByOctet[address.value >>> 24]?.find(([, cidr]) => cidrContains(cidr, address))?.[0] ?? 'public';
  }
  // Only 2000::/3 is allocated as global unicast; what the table does not name is not the Internet.
  return tableV6.find(([, cidr]) => cidrContains(cidr, address))?.[0] ?? 'reserved';
}

function embeddedIpv4({ words: [a, b, c, d] }: AddressV6): Address[] {
  const found: number[] = [];
  const low = (word: number): number => word & 0xffff;
  if (a === 0 && b === 0 && (c === 0xffff0000 || (c === 0 && d > 1))) {
    // IPv4-translated ::ffff:0:0:0/96, and IPv4-compatible ::/96 without :: and ::1.
    found.push(d);
  }
  if (a === 0x0064ff9b && b === 0 && c === 0) {
    found.push(d);
  }
  if (a === 0x0064ff9b && b >>> 16 === 1) {
    // RFC 8215 leaves the length of the local-use prefix to the operator; RFC 6052 section 2.2 skips bits 64 to 71.
    const at48 = (low(b) * 65536 + ((c >>> 8) & 0xffff)) >>> 0;
    const at56 = ((b & 0xff) * 16777216 + (c & 0xffffff)) >>> 0;
    const at64 = ((c & 0xffffff) * 256 + (d >>> 24)) >>> 0;
    // A zero is the padding of another length; the whole prefix is refused as reserved all the same.
    found.push(...[at48, at56, at64, d].filter((value) => value !== 0));
  }
  if (a >>> 16 === 0x2002) {
    found.push((low(a) * 65536 + (b >>> 16)) >>> 0);
  }
  if (a === 0x20010000) {
    // RFC 4380 section 4: the server in the clear, the client with every bit flipped.
    found.push(b, ~d >>> 0);
  }
  if (c === 0x00005efe || c === 0x02005efe) {
    found.push(d);
  }
  return found.map((value): Address => ({ family: 4, value }));
}

/** Blocks of an own-address list; null when an entry cannot be read, which makes every address `own`: fail closed. */
const ownBlocks = new WeakMap<readonly string[], readonly Cidr[] | null>();

function isOwn(address: Address, own: readonly string[]): boolean {
  let blocks = ownBlocks.get(own);
  if (blocks === undefined) {
    blocks = readOwn(own);
    ownBlocks.set(own, blocks);
  }
  return blocks === null || blocks.some((cidr) => cidrContains(cidr, address));
}

function readOwn(own: readonly string[]): readonly Cidr[] | null {
  const blocks: Cidr[] = [];
  for (const text of own) {
    // Interface lists write link-local addresses with a zone id.
    const cidr = parseCidr(text.replace(/%[^/]*/, ''));
    if (!cidr.ok) {
      return null;
    }
    blocks.push(cidr.value);
  }
  return blocks;
}
