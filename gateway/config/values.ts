/** The kinds of text a configuration holds: addresses, durations, sizes, paths, references. */
import { isIP } from 'node:net';
import { type AddressClass, classifyAddress, formatAddress, parseAddress } from '../../policy/index.ts';
import type { ListenAddress, VaultKeyConfig } from '../types.ts';
import { type Shape, text } from './shape.ts';

/** `127.0.0.1:3128` or `[::1]:3128`; port 0 takes any free port. Names are refused: what is bound must be plain to see. */
export const listenAddress: Shape<ListenAddress> = text('an address and port like 127.0.0.1:3128', parseListen, {
  hint: 'an IP address and a port; write IPv6 as "[::1]:3128", in quotes',
});

/** `500ms`, `60s`, `5m`, `1h`; between the bounds, in milliseconds. */
export function duration(minimumMs: number, maximumMs: number): Shape<number> {
  const range = `from ${durationText(minimumMs)} to ${durationText(maximumMs)}`;
  return text(
    `a duration like 60s (units ms, s, m, h), ${range}`,
    (value) => {
      const match = /^(\d{1,9})(ms|s|m|h)$/.exec(value);
      const milliseconds = Number(match?.[1]) * (unitMs[match?.[2] ?? ''] ?? Number.NaN);
      return milliseconds >= minimumMs && milliseconds <= maximumMs ? milliseconds : undefined;
    },
    { schema: { pattern: '^\\d{1,9}(ms|s|m|h)$' } },
  );
}

/** `1048576B`, `64KiB`, `64MiB`, `1GiB`; between the bounds, in bytes. */
export function size(minimumBytes: number, maximumBytes: number): Shape<number> {
  return text(
    `a size like 64MiB (units B, KiB, MiB, GiB), from ${minimumBytes} to ${maximumBytes} bytes`,
    (value) => {
      const match = /^(\d{1,12})(B|KiB|MiB|GiB)$/.exec(value);
      const bytes = Number(match?.[1]) * (unitBytes[match?.[2] ?? ''] ?? Number.NaN);
      return bytes >= minimumBytes && bytes <= maximumBytes ? bytes : undefined;
    },
    { schema: { pattern: '^\\d{1,12}(B|KiB|MiB|GiB)$' } },
  );
}

/** A path as written; the loader resolves it against the home. `~` is not expanded by anybody, so it is refused. */
export const path: Shape<string> = text(
  'a path',
  (value) => (value === '' || value.startsWith('~') ? undefined : value),
  {
    hint: 'absolute, or relative to the Sallyport home; `~` is not expanded',
  },
);

/** `file:PATH` of the vault's master key; the path as written. */
export const keyFile: Shape<string> = text(
  'a reference like file:vault.key',
  (value) => {
    const file = value.startsWith('file:') ? value.slice('file:'.length) : '';
    return file === '' || file.startsWith('~') ? undefined : file;
  },
  { hint: 'the key itself never stands in the configuration; name the file that holds it' },
);

/** Where a passphrase comes from; never the passphrase itself. */
export const passphrase: Shape<VaultKeyConfig> = text(
  '`prompt` or a reference like env:SALLYPORT_PASSPHRASE',
  (value) => {
    if (value === 'prompt') return { kind: 'prompt' };
    const name = /^env:([A-Za-z_][A-Za-z0-9_]{0,127})$/.exec(value)?.[1];
    return name === undefined ? undefined : { kind: 'env', name };
  },
  { hint: 'the passphrase itself never stands in the configuration' },
);

/** `env:NAME` or `file:PATH` of a caller's proxy password. */
export const tokenReference: Shape<string> = text(
  'a reference like env:NAME or file:PATH',
  (value) => (/^env:[A-Za-z_][A-Za-z0-9_]{0,127}$|^file:[^~]/.test(value) ? value : undefined),
  { hint: 'the token itself never stands in the configuration' },
);

/** A policy's name as POLICY.md gives it. */
export const policyName: Shape<string> = pattern('a policy name', /^[a-z0-9-]{1,63}$/);

/** The name a caller is known and audited by. */
export const callerId: Shape<string> = pattern(
  'a caller id of letters, digits, `.`, `_` and `-`',
  /^[a-zA-Z0-9._-]{1,64}$/,
);

/** One label's value. Labels land in audit and are told to nobody else. */
export const labelValue: Shape<string> = text('a label of at most 256 characters', (value) => value, {
  maxLength: 256,
});

/** Keys of labels. */
export const labelKey: RegExp = /^[a-zA-Z0-9._/-]{1,63}$/;

/**
 * Where a pinned name leads, in canonical form. Private space and loopback are the point of a pin; metadata services,
 * link-local, multicast and the like are not, whatever a file says.
 */
export const upstreamAddress: Shape<string> = text(
  'an IP address that is no metadata, link-local, multicast or reserved one',
  (value) => {
    const parsed = value.includes('%') ? null : parseAddress(value);
    if (parsed?.ok !== true) return undefined;
    const canonical = formatAddress(parsed.value);
    return pinnable.has(classifyAddress(canonical)) ? canonical : undefined;
  },
);

const pinnable: ReadonlySet<AddressClass> = new Set(['public', 'private', 'loopback', 'documentation', 'benchmark']);

/** An IP literal, with a port where it is not 53. */
export const resolverAddress: Shape<string> = text('a resolver address like 9.9.9.9 or 127.0.0.1:5353', (value) => {
  if (isIP(value) !== 0) return value.includes('%') ? undefined : value;
  const listen = parseListen(value);
  return listen === undefined || listen.port === 0 ? undefined : value;
});

/** `http://host:port` of a parent proxy. User info is refused: it would be a literal secret. */
export const parentProxy: Shape<{ readonly host: string; readonly port: number }> = text(
  'a proxy like http://proxy.corp.example:3128',
  (value) => {
    const match = /^http:\/\/(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]{1,253}):(\d{1,5})\/?$/.exec(value);
    const port = Number(match?.[2]);
    const host = match?.[1]?.replace(/^\[|\]$/g, '').toLowerCase();
    if (host === undefined || !(port >= 1 && port <= 65_535)) return undefined;
    if (host.includes(':') && isIP(host) !== 6) return undefined;
    return { host, port };
  },
  { hint: 'http only, with a port, without user, password or path' },
);

/** Reads `host:port`; undefined when it is not an IP literal and a port. */
export function parseListen(value: string): ListenAddress | undefined {
  const match = /^(?:\[([^\]%]+)\]|([0-9.]+)):(\d{1,5})$/.exec(value);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port > 65_535) return undefined;
  return isIP(host) === (match?.[1] === undefined ? 4 : 6) ? { host, port } : undefined;
}

function pattern(form: string, regex: RegExp): Shape<string> {
  return text(form, (value) => (regex.test(value) ? value : undefined), { schema: { pattern: regex.source } });
}

function durationText(milliseconds: number): string {
  for (const unit of ['h', 'm', 's']) {
    const length = unitMs[unit] ?? 1;
    if (milliseconds % length === 0) return `${milliseconds / length}${unit}`;
  }
  return `${milliseconds}ms`;
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const unitBytes: Readonly<Record<string, number>> = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };
