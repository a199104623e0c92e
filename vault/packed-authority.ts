/** The authority's key and certificate as one record of the sealed file. */
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, X509Certificate } from 'node:crypto';
import { authoritySubject, buildAuthority, subjectKeyOf, type Validity } from './certificate.ts';
import { VaultError } from './errors.ts';

export interface NewAuthority extends Validity {
  /** 1..64 characters; default names the product and a random part. */
  readonly commonName?: string;
}

/** 16 bytes, above the 64 bits of randomness that the Baseline Requirements ask for. */
const SERIAL_BYTES = 16;
/** X.520 ub-common-name, without controls. */
const COMMON_NAME = /^[^\x00-\x1f\x7f]{1,64}$/u;

/**
 * A new P-256 key with its self-signed certificate, packed; the caller wipes it.
 * @throws VaultError `VAULT_NAME_MALFORMED`
 */
export function packNewAuthority(request: NewAuthority): Buffer {
  const commonName = request.commonName ?? `Sallyport interception ${randomBytes(4).toString('hex')}`;
  if (!COMMON_NAME.test(commonName)) {
    const bounds = '1..64 characters without controls';
    throw new VaultError('VAULT_NAME_MALFORMED', `Cannot create an authority: the common name needs ${bounds}`);
  }
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const certificate = buildAuthority({
    commonName,
    serial: randomSerial(),
    subjectKey: subjectKeyOf(publicKey),
    privateKey,
    notBefore: request.notBefore,
    notAfter: request.notAfter,
  });
  return pack(privateKey.export({ format: 'der', type: 'pkcs8' }), certificate);
}

/** @throws VaultError `VAULT_CA_CORRUPT` */
export function unpackAuthority(packed: Buffer): { certificate: X509Certificate; privateKey: KeyObject } {
  try {
    const end = 2 + packed.readUInt16BE(0);
    const privateKey = createPrivateKey({ key: packed.subarray(2, end), format: 'der', type: 'pkcs8' });
    const certificate = new X509Certificate(packed.subarray(end));
    checkAuthority(certificate, privateKey);
    return { certificate, privateKey };
  } catch (cause) {
    throw new VaultError('VAULT_CA_CORRUPT', 'Cannot load the authority: key and certificate do not read or agree', {
      cause,
    });
  }
}

/** The sealed file is authenticated already; this catches a record written by something that is not us. */
function checkAuthority(certificate: X509Certificate, privateKey: KeyObject): void {
  const isOurs = certificate.ca && certificate.checkPrivateKey(privateKey) && certificate.verify(certificate.publicKey);
  if (!isOurs) throw new Error('not a self-signed authority of this key');
  // Leaves name the authority by this subject, built anew: it has to be the one in the certificate.
  if (!certificate.raw.includes(authoritySubject(commonNameOf(certificate)))) throw new Error('not a subject of ours');
}

/** Positive and of full length: top bit clear, the next one set (RFC 5280 section 4.1.2.2). */
export function randomSerial(): Buffer {
  const serial = randomBytes(SERIAL_BYTES);
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  return serial;
}

/** The legacy object gives the name decoded; the `subject` text would be escaped. Anything but one name is not ours. */
export function commonNameOf(certificate: X509Certificate): string {
  const { CN } = certificate.toLegacyObject().subject;
  return typeof CN === 'string' ? CN : '';
}

/** Key length (u16), PKCS #8 key, certificate. */
function pack(key: Buffer, certificate: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(key.length);
  const packed = Buffer.concat([length, key, certificate]);
  key.fill(0);
  return packed;
}
