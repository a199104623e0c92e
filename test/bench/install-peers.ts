/** `--install`: gets the peers from Debian's archive without letting their services run. */
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { findProgram } from './programs.ts';

/** invoke-rc.d(8) asks this program before it starts a service; 101 = forbidden. */
const POLICY_RC = '/usr/sbin/policy-rc.d';
/** Service units of the packages; they are of no use to the bench. */
const UNITS = ['nginx.service', 'squid.service'];

/** Installs what of `packages` is not there yet. @throws Error when not root, not Debian, or apt fails */
export function installPeers(packages: readonly string[]): void {
  const wanted = packages.filter((name) => !isInstalled(name));
  if (wanted.length === 0) return;
  if (process.geteuid?.() !== 0) throw new Error(`Cannot install ${wanted.join(' ')}: only root can`);
  if (findProgram('apt-get') === null) throw new Error(`Cannot install ${wanted.join(' ')}: no apt-get here`);
  const newUnits = UNITS.filter((unit) => !existsSync(`/lib/systemd/system/${unit}`));
  // A policy of the machine's owner stays in force; only a missing one is put there, for the time of the install.
  const isOurs = !existsSync(POLICY_RC);
  if (isOurs) writeFileSync(POLICY_RC, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    apt('update');
    apt('install', '-y', '--no-install-recommends', ...wanted);
  } finally {
    if (isOurs) rmSync(POLICY_RC, { force: true });
  }
  disable(newUnits.filter((unit) => existsSync(`/lib/systemd/system/${unit}`)));
}

function apt(...args: readonly string[]): void {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  // Its output goes to stderr: stdout belongs to the figures.
  const done = spawnSync('apt-get', ['-q', ...args], { stdio: ['ignore', 2, 2], env });
  if (done.status !== 0) throw new Error(`Cannot install peers: apt-get ${args[0]} ended with ${done.status}`);
}

/** Services that came with this install would start at the next boot; services that were here before are left alone. */
function disable(units: readonly string[]): void {
  const systemctl = findProgram('systemctl');
  if (systemctl === null || units.length === 0) return;
  spawnSync(systemctl, ['disable', '--quiet', ...units], { stdio: ['ignore', 2, 2] });
}

function isInstalled(name: string): boolean {
  const asked = spawnSync('dpkg', ['-s', name], { encoding: 'utf8' });
  return asked.status === 0 && /^Status: .* installed$/m.test(asked.stdout);
}
