/** From a destination to the buckets whose rules and credentials may concern it. */
import { type Address, cidrContains, formatAddress, maskAddress, readAddress } from './address.ts';
import { addressForms } from './address-class.ts';
import type { CompiledRule, PolicyIndex } from './compiled.ts';
import { matchesHost } from './host-pattern.ts';
import type { Question } from './question.ts';
import type { Destination } from './types.ts';

/**
 * Puts the buckets of a destination into the question, most specific first. False means that the destination is not in
 * canonical form, which only a fault of the caller can cause: nothing may be allowed then.
 */
export function findBuckets(index: PolicyIndex, destination: Destination, question: Question): boolean {
  const isCanonical =
    destination.kind === 'name'
      ? findNameBuckets(index, destination.name, question)
      : findAddressBuckets(index, destination.address, question);
  // Only deny rules are in here; they mean raw addresses as well.
  question.addBucket(index.any);
  question.openCount = question.bucketCount;
  if (isCanonical && destination.kind === 'address') {
    addEmbedded(index, destination.address, question);
  }
  return isCanonical;
}

/** Whether some host pattern or block of the rule means the destination. */
export function matchesDestination(rule: Pick<CompiledRule, 'hosts' | 'cidrs'>, destination: Destination): boolean {
  if (rule.hosts.some((pattern) => matchesHost(pattern, destination))) {
    return true;
  }
  const address = destination.kind === 'address' ? readAddress(destination.address) : null;
  return address !== null && rule.cidrs.some((cidr) => cidrContains(cidr, address));
}

/** See `PolicyIndex.belowDepths`. */
export function depthBit(labels: number): number {
  return 1 << Math.min(labels, 31);
}

/** How a network is found in `CidrIndex.v6`. */
export function networkKey(base: Address): string {
  return formatAddress(base);
}

function findNameBuckets(index: PolicyIndex, name: string, question: Question): boolean {
  const exact = index.exact.get(name);
  question.addBucket(exact);
  // An exact hit proves the name canonical: the patterns are. A wildcard would take anything before its suffix.
  if (exact === undefined && !/^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/.test(name)) {
    return false;
  }
  if (index.belowDepths !== 0) {
    addSuffixes(index, name, question);
  }
  return true;
}

/** Walks from the whole name to its last label, and asks only for depths that some wildcard has. */
function addSuffixes(index: PolicyIndex, name: string, question: Question): void {
  let labels = 1;
  for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
    labels += 1;
  }
  let dot = name.indexOf('.');
  for (labels -= 1; labels > 0; labels -= 1) {
    if ((index.belowDepths & depthBit(labels)) !== 0) {
      question.addBucket(index.below.get(name.slice(dot + 1)));
    }
    dot = name.indexOf('.', dot + 1);
  }
}

function findAddressBuckets(index: PolicyIndex, text: string, question: Question): boolean {
  const address = readAddress(text);
  if (address === null) {
    return false;
  }
  addNetworks(index, address, question);
  return true;
}

function addNetworks({ cidrs }: PolicyIndex, address: Address, question: Question): void {
  if (address.family === 4) {
    for (const { prefix, networks } of cidrs.v4) {
      const base = maskAddress(address, prefix);
      question.addBucket(base.family === 4 ? networks.get(base.value) : undefined);
    }
    return;
  }
  for (const { prefix, networks } of cidrs.v6) {
    question.addBucket(networks.get(networkKey(maskAddress(address, prefix))));
  }
}

function addEmbedded(index: PolicyIndex, text: string, question: Question): void {
  const address = readAddress(text);
  if (address !== null && address.family === 6) {
    for (const form of addressForms(address).slice(1)) {
      addNetworks(index, form, question);
    }
  }
}
