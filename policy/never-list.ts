/** Names and addresses that no rule can open, and the verdict on an address that is about to be dialled. */
import { cidrContains, formatAddress, readAddress } from './address.ts';
import { addressForms, classOf, worse } from './address-class.ts';
import type { CompiledPolicy } from './compiled.ts';
import type { AddressClass, AddressVerdict } from './types.ts';

/** Whether a name is on the built-in never-list, by itself or below one that is. Case and a root dot change nothing. */
export function isNeverName(name: string): boolean {
  const bare = name.endsWith('.') ? name.slice(0, -1) : name;
  const candidates = neverByLastLabel.get(bare.slice(bare.lastIndexOf('.') + 1).toLowerCase());
  if (candidates === undefined) {
    return false;
  }
  const lower = bare.toLowerCase();
  return candidates.some(
    (never) =>
      lower.endsWith(never) &&
      (lower.length === never.length || lower.charCodeAt(lower.length - never.length - 1) === 46),
  );
}

/**
 * Whether a policy lets an address be dialled. Every address embedded in it is judged as well; `allowPrivate` opens an
 * address only when it covers each private one. `own`: see `classifyAddress`. Never throws.
 */
export function judgeAddress(policy: CompiledPolicy | null, address: string, own: readonly string[]): AddressVerdict {
  const parsed = readAddress(address);
  if (parsed === null) {
    return refused('reserved', 'never_list', 'The destination is not an address that can be judged.');
  }
  let worst: AddressClass = 'public';
  let isPrivateClosed = false;
  for (const form of addressForms(parsed)) {
    const formClass = classOf(form, own);
    worst = worse(worst, formClass);
    isPrivateClosed ||=
      formClass === 'private' && policy?.index.allowPrivate.some((cidr) => cidrContains(cidr, form)) !== true;
  }
  if (worst === 'public') {
    return publicVerdict;
  }
  const text = formatAddress(parsed);
  if (worst !== 'private') {
    return refused(worst, 'never_list', `Address ${text} is ${described[worst]}, which no policy opens.`);
  }
  if (isPrivateClosed) {
    return refused(
      'private',
      'private_address',
      `Address ${text} is ${described.private} and allowPrivate does not open it.`,
    );
  }
  return { allowed: true, class: 'private', code: 'allowed', reason: `Address ${text} is opened by allowPrivate.` };
}

const publicVerdict: AddressVerdict = Object.freeze({
  allowed: true,
  class: 'public',
  code: 'allowed',
  reason: 'The address is public.',
});

function refused(addressClass: AddressClass, code: 'never_list' | 'private_address', reason: string): AddressVerdict {
  return { allowed: false, class: addressClass, code, reason };
}

const described: Readonly<Record<AddressClass, string>> = {
  public: 'public',
  private: 'private (RFC 1918, CGNAT or ULA)',
  loopback: 'loopback',
  unspecified: 'the unspecified address',
  link_local: 'link-local',
  metadata: 'a cloud metadata address',
  multicast: 'multicast',
  broadcast: 'broadcast',
  documentation: 'reserved for documentation',
  benchmark: 'reserved for benchmarks',
  reserved: 'reserved',
  own: "one of the gateway's own",
};

/** Loopback names, instance metadata of the clouds, and the control plane a pod finds by name. */
const neverNames = [
  'localhost',
  'localdomain',
  'localhost4',
  'localhost6',
  'ip6-localhost',
  'ip6-loopback',
  'metadata',
  'metadata.internal',
  'metadata.goog',
  'metadata.google.internal',
  'metadata.azure.internal',
  'metadata.tencentyun.com',
  'metadata.platformequinix.com',
  'metadata.packet.net',
  'metadata.cloud.ibm.com',
  'instance-data',
  'instance-data.ec2.internal',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
] as const;

const neverByLastLabel = byLastLabel(neverNames);

function byLastLabel(names: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const name of names) {
    const last = name.slice(name.lastIndexOf('.') + 1);
    groups.set(last, [...(groups.get(last) ?? []), name]);
  }
  return groups;
}
