import test from 'ava';
import fc from 'fast-check';
import { type Address, classifyAddress, formatAddress, loadPolicy, parseAddress } from '../../../policy/index.ts';

const shut = new Set([
  'metadata',
  'loopback',
  'unspecified',
  'link_local',
  'broadcast',
  'multicast',
  'reserved',
  'documentation',
  'benchmark',
]);

function codes(key: 'cidrs' | 'allowPrivate', cidr: string): readonly string[] {
  const rules = key === 'cidrs' ? `  - { name: r, effect: allow, cidrs: ["${cidr}"] }` : '  []';
  const top = key === 'allowPrivate' ? `allowPrivate: ["${cidr}"]\n` : '';
  const loaded = loadPolicy(`version: 1\nname: t\n${top}rules:\n${rules}\n`, { file: 'f' });
  return loaded.ok ? [] : loaded.problems.map(({ code }) => code);
}

const word = fc.integer({ min: 0, max: 0xffffffff });
/** Near the blocks that matter as often as anywhere. */
const v4 = fc
  .tuple(fc.constantFrom(0, 10, 100, 127, 168, 169, 172, 192, 198, 203, 224, 240, 255, 8), word)
  .map(([first, rest]) => ((first << 24) >>> 0) + (rest & 0xffffff));
const v6first = fc.oneof(
  fc.constantFrom(0, 0xfd000ec2, 0xfd20, 0xfe800000, 0xff020000, 0x20010db8, 0x20010002, 0x3fff0000, 0x26064700),
  word,
);

function masked(address: Address, prefix: number): string {
  if (address.family === 4) {
    const mask = prefix === 0 ? 0 : (0xffffffff << (32 - prefix)) >>> 0;
    return `${formatAddress({ family: 4, value: (address.value & mask) >>> 0 })}/${prefix}`;
  }
  const words = address.words.map((value, index) => {
    const bits = Math.max(0, Math.min(32, prefix - 32 * index));
    return bits === 0 ? 0 : (value & ((0xffffffff << (32 - bits)) >>> 0)) >>> 0;
  });
  const [a = 0, b = 0, c = 0, d = 0] = words;
  return `${formatAddress({ family: 6, words: [a, b, c, d] })}/${prefix}`;
}

test('loadPolicy() refuses every IPv4 block around an address that no policy opens', (t) => {
  fc.assert(
    fc.property(v4, fc.integer({ min: 0, max: 32 }), (value, prefix) => {
      const text = formatAddress({ family: 4, value });
      if (!shut.has(classifyAddress(text))) return;
      const found = codes('cidrs', masked({ family: 4, value }, prefix));
      // Blocks of private space with a metadata address inside open the rest of them.
      if (classifyAddress(text) === 'metadata' && text.startsWith('100.') && prefix >= 10 && prefix < 32) return;
      t.deepEqual(found, ['POLICY_NEVER_LIST'], `${text}/${prefix}`);
    }),
    { numRuns: 500 },
  );
});

test('loadPolicy() refuses every IPv6 block around an address that no policy opens', (t) => {
  fc.assert(
    fc.property(v6first, word, word, word, fc.integer({ min: 0, max: 128 }), (a, b, c, d, prefix) => {
      const address: Address = { family: 6, words: [a, b, c, d] };
      const text = formatAddress(address);
      // Text of a mapped address reads back as IPv4, and ULA with a metadata address inside is openable around it.
      const parsed = parseAddress(text);
      if (!parsed.ok || parsed.value.family === 4 || a >>> 25 === 0x7e || !shut.has(classifyAddress(text))) return;
      t.deepEqual(codes('cidrs', masked(address, prefix)), ['POLICY_NEVER_LIST'], `${text}/${prefix}`);
    }),
    { numRuns: 500 },
  );
});

const privates: readonly (readonly [cidr: string, codes: readonly string[]])[] = [
  ['10.0.0.0/8', []],
  ['172.16.0.0/12', []],
  ['172.31.255.0/24', []],
  ['192.168.0.0/16', []],
  ['100.64.0.0/10', []],
  ['fc00::/7', []],
  ['fd00::/8', []],
  ['10.0.0.0/7', ['POLICY_NEVER_LIST']],
  ['172.0.0.0/8', ['POLICY_NOT_PRIVATE']],
  ['172.32.0.0/12', ['POLICY_NOT_PRIVATE']],
  ['192.169.0.0/16', ['POLICY_NOT_PRIVATE']],
  ['100.0.0.0/8', ['POLICY_NEVER_LIST']],
  ['fe00::/7', ['POLICY_NEVER_LIST']],
  ['2606:4700::/32', ['POLICY_NOT_PRIVATE']],
  ['127.0.0.0/8', ['POLICY_NEVER_LIST']],
];

for (const [cidr, expected] of privates) {
  test(`allowPrivate ${expected.length === 0 ? 'opens' : 'does not open'} ${cidr}`, (t) => {
    t.deepEqual(codes('allowPrivate', cidr), expected);
  });
}
