/** Network-order bytes of an address text, for certificates. */
import { isIPv4, isIPv6 } from 'node:net';
import { VaultError } from './errors.ts';

/**
 * 4 bytes for IPv4, 16 for IPv6.
 * @throws VaultError `VAULT_NAME_MALFORMED` for anything else, a zone (`%eth0`) included: it means something on one host only.
 */
export function addressBytes(text: string): Buffer {
  if (isIPv4(text)) return Buffer.from(text.split('.').map(Number));
  if (!isIPv6(text) || text.includes('%')) {
    throw new VaultError('VAULT_NAME_MALFORMED', 'Cannot issue a certificate: the destination is not an address');
  }
  return ipv6Bytes(text);
}

/** Invariant: `text` passed isIPv6, so it has at most one `::` and a dotted quad only at its end. */
function ipv6Bytes(text: string): Buffer {
  const bytes = Buffer.alloc(16);
  const [head = '', tail = ''] = text.split('::');
  const first = groupBytes(head);
  const last = groupBytes(tail);
  bytes.set(first, 0);
  bytes.set(last, 16 - last.length);
  return bytes;
}

function groupBytes(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return group.split('.').map(Number);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}
