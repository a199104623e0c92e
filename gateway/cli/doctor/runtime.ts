/** What the gateway itself stands on: Node, its OpenSSL, the clock, core dumps, the system's CAs. */
import { existsSync, readFileSync } from 'node:fs';
import { type Check, missing, off, ok } from './check.ts';

export function runtimeChecks(): readonly Check[] {
  return [nodeCheck(), opensslCheck(), userCheck(), clockCheck(Date.now()), coreDumpCheck(), trustCheck()];
}

const MIN_NODE = [20, 19] as const;
// Older than the Node this needs, or a lifetime ahead: a clock that cannot judge a certificate.
const CLOCK_FROM = Date.UTC(2025, 0, 1);
const CLOCK_TO = Date.UTC(2075, 0, 1);

function nodeCheck(): Check {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const isEnough = major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1]);
  const wanted = MIN_NODE.join('.');
  if (isEnough) return ok('node', process.version);
  return missing('node', `${process.version} is older than ${wanted}`, `install Node ${wanted} or later`);
}

function opensslCheck(): Check {
  const version = process.versions.openssl;
  if (Number.parseInt(version, 10) >= 3) return ok('openssl', `${version}, inside Node`);
  return missing('openssl', `${version} is older than 3`, 'use a Node built with OpenSSL 3');
}

function userCheck(): Check {
  if (process.geteuid?.() === 0) {
    return ok('user', 'root; the gateway needs no root: prefer a user of its own');
  }
  return ok('user', `uid ${process.geteuid?.() ?? 'unknown'}, not root; the gateway needs no more`);
}

function clockCheck(now: number): Check {
  const time = new Date(now).toISOString();
  if (now >= CLOCK_FROM && now < CLOCK_TO) return ok('clock', time);
  return missing('clock', `${time} cannot be right; certificates would be misjudged`, 'set the clock (timedatectl)');
}

/** A core file would hold opened secrets. */
function coreDumpCheck(): Check {
  const line = readText('/proc/self/limits')?.match(/^Max core file size\s+(\S+)/m)?.[1];
  if (line === undefined) return off('core dumps', 'the limit cannot be read here');
  if (line === '0') return ok('core dumps', 'none are written');
  return off('core dumps', `allowed (${line}); a core file would hold opened secrets`, 'ulimit -c 0, or LimitCORE=0');
}

function trustCheck(): Check {
  const file = systemCaFiles.find((candidate) => existsSync(candidate));
  if (file !== undefined) return ok('system CAs', file);
  return off('system CAs', 'no bundle found; the CAs inside Node are used', 'apt-get install ca-certificates');
}

/** Where distributions keep one PEM file of all trusted CAs. */
const systemCaFiles: readonly string[] = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/cert.pem',
  '/etc/ssl/ca-bundle.pem',
];

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // Not this kind of system, or not for this user: the check says so.
    return null;
  }
}
