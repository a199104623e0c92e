/** ULIDs: 48 bits of milliseconds and 80 random bits in Crockford base 32, ordered also within a millisecond. */
import { randomFillSync } from 'node:crypto';

/**
 * Makes a generator of ULIDs. Within one millisecond (or when the clock steps back) each id is the one before it plus one,
 * so ids of one generator sort by creation. They are unique, not secret: a neighbour can be guessed.
 */
export function createUlid(
  now: () => number = Date.now,
  random: (into: Uint8Array) => void = fillRandom,
): () => string {
  let lastMs = -1;
  let timePart = '';
  // 80 bits as four limbs of 20 bits: small integers, four characters each.
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  const bytes = new Uint8Array(10);

  function increment(): void {
    d = (d + 1) & 0xfffff;
    if (d !== 0) return;
    c = (c + 1) & 0xfffff;
    if (c !== 0) return;
    b = (b + 1) & 0xfffff;
    // The top bit is cleared when seeding, so carrying out of `a` would need 2^79 ids within one millisecond.
    if (b === 0) a = (a + 1) & 0xfffff;
  }

  return () => {
    const ms = Math.floor(now());
    if (ms > lastMs && ms <= maxTime) {
      lastMs = ms;
      timePart = encodeTime(ms);
      random(bytes);
      a = (((bytes[0] ?? 0) << 12) | ((bytes[1] ?? 0) << 4) | ((bytes[2] ?? 0) >> 4)) & 0x7ffff;
      b = (((bytes[2] ?? 0) & 15) << 16) | ((bytes[3] ?? 0) << 8) | (bytes[4] ?? 0);
      c = ((bytes[5] ?? 0) << 12) | ((bytes[6] ?? 0) << 4) | ((bytes[7] ?? 0) >> 4);
      d = (((bytes[7] ?? 0) & 15) << 16) | ((bytes[8] ?? 0) << 8) | (bytes[9] ?? 0);
    } else {
      increment();
    }
    return timePart + encodeLimb(a) + encodeLimb(b) + encodeLimb(c) + encodeLimb(d);
  };
}

/** Whether a text is a ULID in its one canonical spelling. */
export function isUlid(text: string): boolean {
  return ulidShape.test(text);
}

const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const ulidShape = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const maxTime = 2 ** 48 - 1;
/** Two characters at a time: 1024 short strings made once. */
const pairs = Array.from({ length: 1024 }, (_, i) => alphabet.charAt(i >> 5) + alphabet.charAt(i & 31));

function encodeLimb(limb: number): string {
  return (pairs[limb >> 10] ?? '') + (pairs[limb & 1023] ?? '');
}

function encodeTime(ms: number): string {
  let rest = ms;
  let text = '';
  for (let i = 0; i < 5; i++) {
    text = (pairs[rest % 1024] ?? '') + text;
    rest = Math.floor(rest / 1024);
  }
  return text;
}

/** One system call fills many seeds: a generator is asked at most once a millisecond, but many may exist. */
const pool = Buffer.alloc(4096);
let poolUsed = pool.length;

function fillRandom(into: Uint8Array): void {
  if (poolUsed + into.length > pool.length) {
    randomFillSync(pool);
    poolUsed = 0;
  }
  into.set(pool.subarray(poolUsed, poolUsed + into.length));
  pool.fill(0, poolUsed, poolUsed + into.length);
  poolUsed += into.length;
}
