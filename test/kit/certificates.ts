/** Throwaway certificates for tests: an authority and leaves that are good or wrong in one chosen way, built without any tool. */
import { createHash, createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIPv4 } from 'node:net';

/** A certificate and its key, both PEM. */
export interface TestCertificate {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface LeafOptions {
  /** DNS names; the first one is also the subject. */
  readonly names: readonly string[];
  /** IPv4 addresses for the subject alternative names. */
  readonly addresses?: readonly string[];
  /** Default: yesterday. */
  readonly notBefore?: Date;
  /** Default: in thirty days. */
  readonly notAfter?: Date;
}

/** Signs leaves that clients trusting `certPem` accept. */
export interface TestAuthority extends TestCertificate {
  issue(options: LeafOptions): TestCertificate;
}

/** Makes a fresh authority; nothing outside the test trusts it. */
export function createAuthority(name = 'Test Authority'): TestAuthority {
  const key = freshKey();
  const self = { name, key };
  const certPem = build({ subject: name, key, issuer: self, ca: true, names: [], addresses: [], ...defaultDates({}) });
  return {
    certPem,
    keyPem: privatePem(key),
    issue: (options) => issueLeaf(self, options),
  };
}

/** A leaf that vouches for itself. */
export function selfSigned(names: readonly string[]): TestCertificate {
  const key = freshKey();
  const subject = names[0] ?? 'self-signed';
  const certPem = build({
    subject,
    key,
    issuer: { name: subject, key },
    ca: false,
    names,
    addresses: [],
    ...defaultDates({}),
  });
  return { certPem, keyPem: privatePem(key) };
}

/** Dates for {@link LeafOptions} of a leaf whose time is over. */
export const expired = { notBefore: new Date('2021-01-01T00:00:00Z'), notAfter: new Date('2021-02-01T00:00:00Z') };

/** Dates for {@link LeafOptions} of a leaf whose time has not come. */
export const notYetValid = { notBefore: new Date('2048-01-01T00:00:00Z'), notAfter: new Date('2048-02-01T00:00:00Z') };

/** Server options that offer nothing newer than TLS 1.1; OpenSSL needs its security level lowered for that. */
export const oldTlsOnly = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;

interface Issuer {
  readonly name: string;
  readonly key: KeyObject;
}

interface CertificateFields {
  readonly subject: string;
  readonly key: KeyObject;
  readonly issuer: Issuer;
  readonly ca: boolean;
  readonly names: readonly string[];
  readonly addresses: readonly string[];
  readonly notBefore: Date;
  readonly notAfter: Date;
}

function issueLeaf(issuer: Issuer, options: LeafOptions): TestCertificate {
  const key = freshKey();
  const certPem = build({
    subject: options.names[0] ?? options.addresses?.[0] ?? 'leaf',
    key,
    issuer,
    ca: false,
    names: options.names,
    addresses: options.addresses ?? [],
    ...defaultDates(options),
  });
  return { certPem, keyPem: privatePem(key) };
}

const dayMs = 86_400_000;

function defaultDates(options: { notBefore?: Date; notAfter?: Date }): { notBefore: Date; notAfter: Date } {
  return {
    notBefore: options.notBefore ?? new Date(Date.now() - dayMs),
    notAfter: options.notAfter ?? new Date(Date.now() + 30 * dayMs),
  };
}

function freshKey(): KeyObject {
  const { privateKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  return createPrivateKey(privateKey);
}

function privatePem(key: KeyObject): string {
  return String(key.export({ type: 'pkcs8', format: 'pem' }));
}

/** The public half of a P-256 private key as SubjectPublicKeyInfo. */
function publicInfo(key: KeyObject): Buffer {
  const jwk = key.export({ format: 'jwk' });
  const point = Buffer.concat([
    Buffer.of(4),
    Buffer.from(jwk.x ?? '', 'base64url'),
    Buffer.from(jwk.y ?? '', 'base64url'),
  ]);
  return sequence(sequence(oid('1.2.840.10045.2.1'), oid('1.2.840.10045.3.1.7')), bits(point));
}

/** RFC 5280 section 4.1: signed with ecdsa-with-SHA256. */
function build(fields: CertificateFields): string {
  const algorithm = sequence(oid('1.2.840.10045.4.3.2'));
  const serial = randomBytes(16);
  // A leading zero bit keeps the serial a positive INTEGER, a leading one keeps it in its shortest form.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  const body = sequence(
    tagged(0, der(0x02, Buffer.of(2))),
    der(0x02, serial),
    algorithm,
    distinguishedName(fields.issuer.name),
    sequence(time(fields.notBefore), time(fields.notAfter)),
    distinguishedName(fields.subject),
    publicInfo(fields.key),
    tagged(3, sequence(...extensions(fields))),
  );
  const certificate = sequence(body, algorithm, bits(sign('sha256', body, fields.issuer.key)));
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function extensions(fields: CertificateFields): Buffer[] {
  const critical = der(0x01, Buffer.of(0xff));
  const octets = (value: Buffer) => der(0x04, value);
  const list = [
    sequence(oid('2.5.29.14'), octets(octets(keyId(fields.key)))),
    sequence(oid('2.5.29.35'), octets(sequence(der(0x80, keyId(fields.issuer.key))))),
  ];
  if (fields.ca) {
    list.push(sequence(oid('2.5.29.19'), critical, octets(sequence(critical))));
    // keyCertSign and cRLSign
    list.push(sequence(oid('2.5.29.15'), critical, octets(der(0x03, Buffer.of(1, 0x06)))));
    return list;
  }
  list.push(sequence(oid('2.5.29.19'), critical, octets(sequence())));
  // digitalSignature
  list.push(sequence(oid('2.5.29.15'), critical, octets(der(0x03, Buffer.of(7, 0x80)))));
  list.push(sequence(oid('2.5.29.37'), octets(sequence(oid('1.3.6.1.5.5.7.3.1'), oid('1.3.6.1.5.5.7.3.2')))));
  const alternatives = [
    ...fields.names.map((name) => der(0x82, Buffer.from(name, 'latin1'))),
    ...fields.addresses.filter(isIPv4).map((address) => der(0x87, Buffer.from(address.split('.').map(Number)))),
  ];
  if (alternatives.length > 0) list.push(sequence(oid('2.5.29.17'), octets(sequence(...alternatives))));
  return list;
}

function keyId(key: KeyObject): Buffer {
  return createHash('sha1').update(publicInfo(key)).digest();
}

function distinguishedName(common: string): Buffer {
  return sequence(der(0x31, sequence(oid('2.5.4.3'), der(0x0c, Buffer.from(common, 'utf8')))));
}

/** UTCTime, which ends with 2049. */
function time(date: Date): Buffer {
  const digits = date.toISOString().replace(/[-:T]/g, '').slice(2, 14);
  return der(0x17, Buffer.from(`${digits}Z`, 'latin1'));
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function tagged(number: number, content: Buffer): Buffer {
  return der(0xa0 + number, content);
}

function bits(content: Buffer): Buffer {
  return der(0x03, Buffer.concat([Buffer.of(0), content]));
}

function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const groups = [arc & 0x7f];
    for (let left = arc >>> 7; left > 0; left >>>= 7) groups.unshift((left & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return der(0x06, Buffer.from(bytes));
}

function der(tag: number, content: Buffer): Buffer {
  const length = content.length;
  if (length < 0x80) return Buffer.concat([Buffer.of(tag, length), content]);
  if (length < 0x100) return Buffer.concat([Buffer.of(tag, 0x81, length), content]);
  return Buffer.concat([Buffer.of(tag, 0x82, length >> 8, length & 0xff), content]);
}
