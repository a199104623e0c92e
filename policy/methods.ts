/** Sets of request methods as rules mean them. */

/** A set as bits for the common methods, with the tokens beyond them by name. */
export interface MethodSet {
  readonly bits: number;
  readonly others: ReadonlySet<string>;
}

/** The bit of a method token: one of the common, {@link REGISTERED}, or {@link UNKNOWN}. Case counts (RFC 9110 section 9.1). */
export function methodBit(token: string): number {
  return bits.get(token) ?? UNKNOWN;
}

export function hasMethod(set: MethodSet, bit: number, token: string): boolean {
  return (set.bits & bit) !== 0 || (bit >= REGISTERED && set.others.has(token));
}

/**
 * The methods of a rule that opens something. None listed means the registered ones, without CONNECT and TRACE: TRACE would
 * send injected credentials back. A token nobody registered must be listed, or `*`.
 */
export function openMethods(tokens: readonly string[]): MethodSet {
  if (tokens.length === 0) {
    return { bits: COMMON | REGISTERED, others: none };
  }
  return tokens.includes('*') ? every : listed(tokens);
}

/** The methods of a rule that refuses: none listed means every token, and tokens are compared in upper case. */
export function denyMethods(tokens: readonly string[]): MethodSet {
  return tokens.length === 0 || tokens.includes('*') ? every : listed(tokens.map((token) => token.toUpperCase()));
}

/** Whether a token is one of RFC 9110 section 5.6.2 and short enough to be repeated in an answer. */
export function isMethodToken(token: string, maxLength: number): boolean {
  return token.length <= maxLength && /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(token);
}

const common = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** The IANA method registry without the common ones, CONNECT, TRACE, PRI and `*`. */
const registered = [
  'ACL',
  'BASELINE-CONTROL',
  'BIND',
  'CHECKIN',
  'CHECKOUT',
  'COPY',
  'LABEL',
  'LINK',
  'LOCK',
  'MERGE',
  'MKACTIVITY',
  'MKCALENDAR',
  'MKCOL',
  'MKREDIRECTREF',
  'MKWORKSPACE',
  'MOVE',
  'ORDERPATCH',
  'PROPFIND',
  'PROPPATCH',
  'QUERY',
  'REBIND',
  'REPORT',
  'SEARCH',
  'UNBIND',
  'UNCHECKOUT',
  'UNLINK',
  'UNLOCK',
  'UPDATE',
  'UPDATEREDIRECTREF',
  'VERSION-CONTROL',
] as const;

const COMMON = (1 << common.length) - 1;
const REGISTERED = 1 << common.length;
const UNKNOWN = REGISTERED << 1;

const none: ReadonlySet<string> = new Set();
const every: MethodSet = { bits: COMMON | REGISTERED | UNKNOWN, others: none };

const bits: ReadonlyMap<string, number> = new Map([
  ...common.map((token, index): [string, number] => [token, 1 << index]),
  ...registered.map((token): [string, number] => [token, REGISTERED]),
]);

function listed(tokens: readonly string[]): MethodSet {
  const others = new Set<string>();
  let set = 0;
  for (const token of tokens) {
    const bit = methodBit(token);
    if (bit < REGISTERED) {
      // A rule for GET is one for HEAD too; never the other way round.
      set |= token === 'GET' ? bit | methodBit('HEAD') : bit;
    } else {
      others.add(token);
    }
  }
  return { bits: set, others };
}
