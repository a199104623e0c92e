/** What later versions enforce with: KVM, BPF, user namespaces, TUN. Only looked at, never opened or changed. */
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { type Check, off, ok } from './check.ts';

export function kernelChecks(): readonly Check[] {
  return [kvmCheck(), bpfCheck(), namespaceCheck(), tunCheck(), enforcementCheck()];
}

// capabilities(7): CAP_SYS_ADMIN 21, CAP_BPF 39.
const CAP_SYS_ADMIN = 21n;
const CAP_BPF = 39n;

function kvmCheck(): Check {
  const name = 'kvm';
  if (!existsSync('/dev/kvm')) {
    return off(
      name,
      'no /dev/kvm',
      'enable virtualisation in the firmware, or nested virtualisation in the hypervisor',
    );
  }
  if (!canOpen('/dev/kvm')) return off(name, '/dev/kvm is not for this user', 'usermod -aG kvm USER');
  return ok(name, '/dev/kvm is there; no VM was tried: this version runs none');
}

function bpfCheck(): Check {
  const name = 'bpf';
  if (!hasCapability(CAP_BPF) && !hasCapability(CAP_SYS_ADMIN)) {
    return off(name, 'this process has neither CAP_BPF nor CAP_SYS_ADMIN', 'needs root or CAP_BPF');
  }
  if (!existsSync('/sys/kernel/btf/vmlinux')) {
    return off(
      name,
      'the kernel has no type information (/sys/kernel/btf/vmlinux)',
      'a kernel with CONFIG_DEBUG_INFO_BTF',
    );
  }
  return ok(name, 'capability and kernel types are there; nothing was loaded: this version uses none');
}

function namespaceCheck(): Check {
  const name = 'user namespaces';
  if (!existsSync('/proc/self/ns/user')) return off(name, 'the kernel has none', 'a kernel with CONFIG_USER_NS');
  if (readNumber('/proc/sys/user/max_user_namespaces') === 0) {
    return off(name, 'user.max_user_namespaces is 0', 'sysctl user.max_user_namespaces=15000');
  }
  if (readNumber('/proc/sys/kernel/unprivileged_userns_clone') === 0) {
    return off(name, 'closed to ordinary users', 'sysctl kernel.unprivileged_userns_clone=1');
  }
  if (readNumber('/proc/sys/kernel/apparmor_restrict_unprivileged_userns') === 1) {
    return off(name, 'restricted by AppArmor', 'an AppArmor profile that allows userns');
  }
  return ok(name, 'open to this user as far as the settings say');
}

function tunCheck(): Check {
  const name = 'tun';
  if (!existsSync('/dev/net/tun')) return off(name, 'no /dev/net/tun', 'modprobe tun');
  if (!canOpen('/dev/net/tun')) return off(name, '/dev/net/tun is not for this user', 'needs root or CAP_NET_ADMIN');
  return ok(name, '/dev/net/tun is there; this version uses none');
}

/** Said wherever the machine is judged: nobody may believe in a wall that is not there. */
function enforcementCheck(): Check {
  return off(
    'kernel enforcement',
    'this version steers a command by its environment only; a program that ignores its proxy settings is not held back',
  );
}

function hasCapability(number: bigint): boolean {
  const effective = readText('/proc/self/status')?.match(/^CapEff:\s*([0-9a-f]+)$/m)?.[1];
  return effective !== undefined && ((BigInt(`0x${effective}`) >> number) & 1n) === 1n;
}

function canOpen(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    // "No" is the answer here, whatever the reason.
    return false;
  }
}

function readNumber(path: string): number | null {
  const text = readText(path);
  return text === null ? null : Number(text.trim());
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // The setting does not exist on this kernel.
    return null;
  }
}
