/** Address blocks of a policy: canonical text, and never a block that reaches into what no policy opens. */
import { cidrContains, formatCidr, parseCidr, readAddress } from '../address.ts';
import { classifyAddress, isPrivateCidr } from '../address-class.ts';
import { type DocumentCheck, readAll } from './document-check.ts';
import { lowerFirst } from './fields.ts';
import type { DocumentPath } from './schema-problems.ts';

type Cidr = Extract<ReturnType<typeof parseCidr>, { ok: true }>['value'];

/** Blocks of a rule. An allow rule that names shut space looks as if it opened it, so that is an error, not a no-op. */
export function readCidrs(
  written: readonly string[] | undefined,
  path: DocumentPath,
  effect: 'allow' | 'deny',
  check: DocumentCheck,
): readonly string[] | null {
  return readAll(written, (text, index) => {
    const place = [...path, 'cidrs', index];
    const cidr = readCidr(text, place, check);
    if (cidr === null) return null;
    return effect === 'deny' || isPrivateCidr(cidr) || isOpenable(cidr, place, check) ? formatCidr(cidr) : null;
  });
}

/** One block of `allowPrivate`: only RFC 1918, RFC 6598 (CGNAT) and RFC 4193 (ULA) space. Null when something was reported. */
export function readPrivateBlock(text: string, index: number, check: DocumentCheck): string | null {
  const place = ['allowPrivate', index];
  const cidr = readCidr(text, place, check);
  if (cidr === null) return null;
  if (!isPrivateCidr(cidr)) {
    check.report(place, {
      code: isPublic(cidr) ? 'NOT_PRIVATE' : 'NEVER_LIST',
      message: `\`allowPrivate\` opens private space only, and ${formatCidr(cidr)} is not inside it`,
      hint: 'Private are 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10 and fc00::/7.',
    });
    return null;
  }
  const shut = shutInside(cidr);
  if (shut !== null) {
    const message = `${shut.address} inside this block is a ${shut.class} address and stays shut`;
    check.report(place, { code: 'LINT_STAYS_SHUT', message, severity: 'warning' });
  }
  return formatCidr(cidr);
}

function readCidr(text: string, path: DocumentPath, check: DocumentCheck): Cidr | null {
  const cidr = parseCidr(text);
  if (cidr.ok) return cidr.value;
  check.report(path, { code: 'CIDR', message: lowerFirst(cidr.reason) });
  return null;
}

function isOpenable(cidr: Cidr, path: DocumentPath, check: DocumentCheck): boolean {
  const shut = shutInside(cidr);
  if (shut === null) return true;
  const isAlone = formatCidr(cidr).startsWith(`${shut.address}/`) && cidr.prefix > 0;
  const message = `${formatCidr(cidr)} covers ${shut.address} (${shut.class.replace('_', '-')}), which no rule opens`;
  check.report(path, { code: 'NEVER_LIST', message, hint: isAlone ? 'Remove it.' : 'Name smaller blocks.' });
  return false;
}

function isPublic(cidr: Cidr): boolean {
  return shutInside(cidr) === null && classifyAddress(formatCidr(cidr).replace(/\/.*/, '')) === 'public';
}

/** An address of the block that no policy opens; null when there is none. Private space counts only inside wider blocks. */
function shutInside(cidr: Cidr): { readonly address: string; readonly class: string } | null {
  const base = formatCidr(cidr).replace(/\/.*/, '');
  // Two blocks are nested or disjoint: so either this block's first address is shut, or it holds a shut block's first one.
  const inside = probes.filter((probe) => cidrContains(cidr, probe.address)).map((probe) => probe.text);
  for (const address of [base, ...inside]) {
    const addressClass = classifyAddress(address);
    if (addressClass !== 'public' && addressClass !== 'private') return { address, class: addressClass };
  }
  return null;
}

/** The first address of every shut block. `classifyAddress` says what each is; a test checks that none is missing. */
const probes = [
  '0.0.0.0',
  '100.100.100.200',
  '127.0.0.0',
  '168.63.129.16',
  '169.254.0.0',
  '169.254.169.254',
  '192.0.0.0',
  '192.0.2.0',
  '192.88.99.0',
  '198.18.0.0',
  '198.51.100.0',
  '203.0.113.0',
  '224.0.0.0',
  '240.0.0.0',
  '255.255.255.255',
  '::',
  '::1',
  'fd00:ec2::',
  'fd20:ce::254',
  'fd00:42::42',
  'fd00:c1::a9fe:a9fe',
  'fe80::',
  'ff00::',
  '2001:db8::',
  '3fff::',
  '2001:2::',
  '2001:1::',
  '4000::',
  '100::',
].flatMap((text) => {
  const address = readAddress(text);
  return address === null ? [] : [{ text, address }];
});
