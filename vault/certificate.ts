/** The two kinds of certificate the gateway signs: its own authority, and a leaf for one destination. */
import { createHash, type KeyObject, sign } from 'node:crypto';
import { isIP } from 'node:net';
import { addressBytes } from './address-bytes.ts';
import {
  bitString,
  boolean,
  explicit,
  implicit,
  objectIdentifier,
  octetString,
  sequence,
  set,
  time,
  unsignedInteger,
  utf8String,
} from './der.ts';

export interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

export interface AuthorityRequest extends Validity {
  readonly commonName: string;
  /** 16..20 random bytes. */
  readonly serial: Uint8Array;
  readonly subjectKey: SubjectKey;
  readonly privateKey: KeyObject;
}

export interface LeafRequest extends Validity {
  /** Canonical name (A-labels) or canonical address text. */
  readonly destination: string;
  readonly serial: Uint8Array;
  readonly subjectKey: SubjectKey;
  readonly issuer: Issuer;
}

/** A public key as certificates hold it; made once, as a process signs thousands of leaves for one key. */
export interface SubjectKey {
  /** SubjectPublicKeyInfo as DER. */
  readonly info: Uint8Array;
  readonly keyId: Uint8Array;
}

/** What a leaf takes over from the authority that signs it. */
export interface Issuer {
  /** The authority's subject as DER. */
  readonly subject: Uint8Array;
  readonly keyId: Uint8Array;
  readonly privateKey: KeyObject;
}

/** X.520 ub-common-name: longer names do not fit a CN and stand in the SAN alone. */
const MAX_COMMON_NAME_CHARS = 64;

const ECDSA_WITH_SHA256 = sequence(objectIdentifier('1.2.840.10045.4.3.2'));
const COMMON_NAME = objectIdentifier('2.5.4.3');
const ORGANIZATION = objectIdentifier('2.5.4.10');
const SUBJECT_KEY_ID = objectIdentifier('2.5.29.14');
const KEY_USAGE = objectIdentifier('2.5.29.15');
const SUBJECT_ALT_NAME = objectIdentifier('2.5.29.17');
const BASIC_CONSTRAINTS = objectIdentifier('2.5.29.19');
const AUTHORITY_KEY_ID = objectIdentifier('2.5.29.35');
const EXTENDED_KEY_USAGE = objectIdentifier('2.5.29.37');
const SERVER_AUTH = objectIdentifier('1.3.6.1.5.5.7.3.1');
const VERSION_3 = explicit(0, unsignedInteger(Buffer.of(2)));

/** pathlen 0: this authority signs leaves and no further authority. */
const AUTHORITY_CONSTRAINTS = extension(
  BASIC_CONSTRAINTS,
  sequence(boolean(true), unsignedInteger(Buffer.of(0))),
  true,
);
/** keyCertSign (bit 5) and cRLSign (bit 6). */
const AUTHORITY_USAGE = extension(KEY_USAGE, bitString(Buffer.of(0x06), 1), true);
const LEAF_CONSTRAINTS = extension(BASIC_CONSTRAINTS, sequence(), true);
/** digitalSignature (bit 0): all that an ECDSA server key does in TLS 1.2 and 1.3. */
const LEAF_USAGE = extension(KEY_USAGE, bitString(Buffer.of(0x80), 7), true);
const LEAF_PURPOSE = extension(EXTENDED_KEY_USAGE, sequence(SERVER_AUTH), false);

/** A self-signed authority as DER (RFC 5280 section 4.2.1: critical CA constraints and key usage, subject key id). */
export function buildAuthority(request: AuthorityRequest): Buffer {
  const subject = authoritySubject(request.commonName);
  const keyId = request.subjectKey.keyId;
  const extensions = [
    AUTHORITY_CONSTRAINTS,
    AUTHORITY_USAGE,
    extension(SUBJECT_KEY_ID, octetString(keyId), false),
    extension(AUTHORITY_KEY_ID, sequence(implicit(0, keyId)), false),
  ];
  return signed(request, { subject, issuer: subject, extensions, privateKey: request.privateKey });
}

/** A server leaf as DER. The SAN alone names the destination; it is critical when the subject is empty (RFC 5280 section 4.2.1.6). */
export function buildLeaf(request: LeafRequest): Buffer {
  const { destination, issuer } = request;
  const fitsCommonName = destination.length <= MAX_COMMON_NAME_CHARS;
  const subject = fitsCommonName ? sequence(attribute(COMMON_NAME, destination)) : sequence();
  const extensions = [
    LEAF_CONSTRAINTS,
    LEAF_USAGE,
    LEAF_PURPOSE,
    extension(SUBJECT_ALT_NAME, sequence(generalName(destination)), !fitsCommonName),
    extension(AUTHORITY_KEY_ID, sequence(implicit(0, issuer.keyId)), false),
    extension(SUBJECT_KEY_ID, octetString(request.subjectKey.keyId), false),
  ];
  return signed(request, { subject, issuer: issuer.subject, extensions, privateKey: issuer.privateKey });
}

/** The authority's subject for a common name, as DER. */
export function authoritySubject(commonName: string): Buffer {
  return sequence(attribute(ORGANIZATION, 'Sallyport'), attribute(COMMON_NAME, commonName));
}

/** RFC 5280 section 4.2.1.2 method 1 takes SHA-1; RFC 7093 allows the left 160 bits of SHA-256, which is what this is. */
export function subjectKeyOf(publicKey: KeyObject): SubjectKey {
  const info = publicKey.export({ format: 'der', type: 'spki' });
  return { info, keyId: createHash('sha256').update(info).digest().subarray(0, 20) };
}

interface Body {
  readonly subject: Uint8Array;
  readonly issuer: Uint8Array;
  readonly extensions: readonly Uint8Array[];
  readonly privateKey: KeyObject;
}

function signed(request: Validity & { serial: Uint8Array; subjectKey: SubjectKey }, body: Body): Buffer {
  const certificate = sequence(
    VERSION_3,
    unsignedInteger(request.serial),
    ECDSA_WITH_SHA256,
    body.issuer,
    sequence(time(request.notBefore), time(request.notAfter)),
    body.subject,
    request.subjectKey.info,
    explicit(3, sequence(...body.extensions)),
  );
  return sequence(certificate, ECDSA_WITH_SHA256, bitString(sign('sha256', certificate, body.privateKey)));
}

function extension(id: Uint8Array, value: Uint8Array, isCritical: boolean): Buffer {
  return isCritical ? sequence(id, boolean(true), octetString(value)) : sequence(id, octetString(value));
}

function attribute(id: Uint8Array, text: string): Buffer {
  return set(sequence(id, utf8String(text)));
}

/** dNSName is `[2]`, iPAddress is `[7]` with 4 or 16 bytes (RFC 5280 section 4.2.1.6). */
function generalName(destination: string): Buffer {
  if (isIP(destination) !== 0) return implicit(7, addressBytes(destination));
  return implicit(2, Buffer.from(destination, 'latin1'));
}
