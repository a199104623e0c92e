/** Throw-away certificates of one run: the CA that the peers intercept with, and the CA of the origin. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAuthority, type TestCertificate } from '../kit/certificates.ts';
import { DOMAIN } from './workload.ts';

/** Files of a certificate and its key, PEM. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface Pki {
  /** Signs what the peers show to the client. */
  readonly interceptCa: KeyPair;
  /** `*.bench.example` under {@link Pki.interceptCa}, for peers that do not mint. */
  readonly interceptLeaf: KeyPair;
  /** Signs the origin's certificate; the only CA a target may trust upstream. */
  readonly originCa: KeyPair;
  readonly originLeaf: KeyPair;
}

/** Makes all of it in `dir`, P-256 throughout. */
export function createPki(dir: string): Pki {
  const names = [`*.${DOMAIN}`];
  const intercept = createAuthority('Bench Interception CA');
  const origin = createAuthority('Bench Origin CA');
  return {
    interceptCa: save(dir, 'intercept-ca', intercept),
    interceptLeaf: save(dir, 'intercept-leaf', intercept.issue({ names })),
    originCa: save(dir, 'origin-ca', origin),
    originLeaf: save(dir, 'origin-leaf', origin.issue({ names })),
  };
}

/** A PEM file as text. */
export function readPem(file: string): string {
  return readFileSync(file, 'latin1');
}

function save(dir: string, name: string, certificate: TestCertificate): KeyPair {
  const pair = { cert: join(dir, `${name}.pem`), key: join(dir, `${name}.key`) };
  writeFileSync(pair.cert, certificate.certPem);
  writeFileSync(pair.key, certificate.keyPem, { mode: 0o600 });
  return pair;
}
