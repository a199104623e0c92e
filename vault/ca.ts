/** The interception authority: signs one short-lived leaf per destination so that the gateway can read what a sandbox sends. */
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import {
  authoritySubject,
  buildAuthority,
  buildLeaf,
  type Issuer,
  type SubjectKey,
  subjectKeyOf,
} from './certificate.ts';
import { VaultError } from './errors.ts';
import { toPem } from './pem.ts';
import type { SealedPurpose } from './purposes.ts';
import type { Leaf } from './types.ts';

/** Where the authority's key is kept: the sealed file, or anything else with the same two doors. */
export interface CaStore {
  seal(purpose: SealedPurpose, name: string, bytes: Buffer): Promise<void>;
  unseal(purpose: SealedPurpose, name: string): Buffer;
}

export interface CaOptions {
  /** Absent: the authority lives in memory only and ends with the process. */
  readonly store?: CaStore;
  /** Milliseconds since 1970; default `Date.now`. */
  readonly now?: () => number;
}

export interface CaCreateOptions extends CaOptions {
  /** 1..64 characters; default names the product and a random part, so that two authorities never share a subject. */
  readonly commonName?: string;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Long enough that images with the authority baked in outlive a project, short enough that its end is planned. */
export const CA_LIFETIME_MS = 5 * 365 * DAY_MS;
/** Sandbox clocks run behind, e.g. after a restored snapshot: everything is valid from a day before it was made. */
export const BACKDATE_MS = DAY_MS;
/** Far below the 397 days that browsers accept (CA/Browser Forum BR 6.3.2). */
export const LEAF_LIFETIME_MS = 7 * DAY_MS;
/** A leaf is replaced this long before its end, so that a client whose clock runs ahead still accepts it. */
export const LEAF_RENEW_BEFORE_MS = 2 * DAY_MS;
/** About 40 KiB each; more distinct hosts than that within one leaf lifetime evict the least recently used. */
export const MAX_SECURE_CONTEXTS = 2_000;
/** 16 bytes, above the 64 bits of randomness that the Baseline Requirements ask for. */
const SERIAL_BYTES = 16;
/** OpenSSL's ticket key: 16 name, 16 HMAC, 16 AES. */
const TICKET_KEY_BYTES = 48;
/** X.520 ub-common-name, without controls. */
const COMMON_NAME = /^[^\x00-\x1f\x7f]{1,64}$/u;
const MAX_NAME_CHARS = 253;
const CANONICAL_NAME = /^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/;
const STORE_PURPOSE = 'interception-ca';
const STORE_NAME = 'current';

/** An authority in use. Its private key never leaves this object but sealed. */
export class InterceptionCa {
  /** The authority's certificate, for trust stores. */
  readonly certPem: string;
  /** Upper-case SHA-256 with colons, as `openssl x509 -fingerprint -sha256` prints it. */
  readonly fingerprint256: string;
  readonly commonName: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly #issuer: Issuer;
  readonly #now: () => number;
  readonly #leafSubjectKey: SubjectKey;
  readonly #leafKeyPem: string;
  readonly #ticketKeys = randomBytes(TICKET_KEY_BYTES);
  /** Insertion order is use order: the first key is the least recently used. */
  readonly #contexts = new Map<string, CachedContext>();
  #isClosed = false;

  private constructor(certificate: X509Certificate, privateKey: KeyObject, now: () => number) {
    this.certPem = toPem('CERTIFICATE', certificate.raw);
    this.fingerprint256 = certificate.fingerprint256;
    this.commonName = commonNameOf(certificate);
    this.notBefore = new Date(certificate.validFrom);
    this.notAfter = new Date(certificate.validTo);
    this.#now = now;
    const { keyId } = subjectKeyOf(certificate.publicKey);
    this.#issuer = { subject: authoritySubject(this.commonName), keyId, privateKey };
    // One leaf key per process: a key per host would cost as much as the signature and protect nothing more, as all live here.
    const leafKeys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#leafSubjectKey = subjectKeyOf(leafKeys.publicKey);
    this.#leafKeyPem = leafKeys.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
  }

  /**
   * Makes a new authority (P-256, about 5 years, backdated a day) and seals it into the store, if one is given; an older one there is replaced.
   * @throws VaultError `VAULT_NAME_MALFORMED` and what the store throws
   */
  static async create(options: CaCreateOptions = {}): Promise<InterceptionCa> {
    const { store, now = Date.now } = options;
    const commonName = options.commonName ?? `Sallyport interception ${randomBytes(4).toString('hex')}`;
    if (!COMMON_NAME.test(commonName)) {
      throw new VaultError(
        'VAULT_NAME_MALFORMED',
        'Cannot create an authority: the common name needs 1..64 characters',
      );
    }
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const notBefore = new Date(now() - BACKDATE_MS);
    const notAfter = new Date(now() + CA_LIFETIME_MS);
    const certificate = buildAuthority({
      commonName,
      serial: randomSerial(),
      subjectKey: subjectKeyOf(publicKey),
      privateKey,
      notBefore,
      notAfter,
    });
    if (store !== undefined) {
      const packed = pack(privateKey.export({ format: 'der', type: 'pkcs8' }), certificate);
      await store.seal(STORE_PURPOSE, STORE_NAME, packed);
      packed.fill(0);
    }
    return new InterceptionCa(new X509Certificate(certificate), privateKey, now);
  }

  /**
   * Opens the authority that the store holds.
   * @throws VaultError `VAULT_SECRET_MISSING` (none there yet), `VAULT_CA_CORRUPT`, `VAULT_CA_EXPIRED`
   */
  static load(options: CaOptions & { readonly store: CaStore }): InterceptionCa {
    const { store, now = Date.now } = options;
    const packed = store.unseal(STORE_PURPOSE, STORE_NAME);
    try {
      const { certificate, privateKey } = unpack(packed);
      if (now() >= new Date(certificate.validTo).getTime()) throw expired(certificate.validTo);
      return new InterceptionCa(certificate, privateKey, now);
    } finally {
      packed.fill(0);
    }
  }

  /** {@link load}, or {@link create} when the store has none. */
  static async open(options: CaCreateOptions & { readonly store: CaStore }): Promise<InterceptionCa> {
    try {
      return InterceptionCa.load(options);
    } catch (error) {
      if (error instanceof VaultError && error.code === 'VAULT_SECRET_MISSING') return InterceptionCa.create(options);
      throw error;
    }
  }

  /** Contexts held now; at most {@link MAX_SECURE_CONTEXTS}. */
  get contextCount(): number {
    return this.#contexts.size;
  }

  /**
   * Signs a leaf for a canonical name or address. Not cached; see {@link secureContextFor}.
   * @throws VaultError `VAULT_NAME_MALFORMED`, `VAULT_CA_EXPIRED`, `VAULT_CLOSED`
   */
  leafFor(destination: string): Leaf {
    const { leaf, notAfter } = this.#sign(destination);
    return { certPem: leaf + this.certPem, keyPem: this.#leafKeyPem, notAfter };
  }

  /**
   * The TLS context to answer as `host` (canonical name or address): made once, kept until shortly before its leaf ends or until it is evicted.
   * Every context shares its ticket keys, so a client resumes its session on any of them.
   * @throws VaultError like {@link leafFor}
   */
  secureContextFor(host: string): SecureContext {
    const cached = this.#contexts.get(host);
    if (cached !== undefined) {
      this.#contexts.delete(host);
      if (cached.renewAtMs > this.#now()) {
        this.#contexts.set(host, cached);
        return cached.context;
      }
    }
    const made = this.#makeContext(host);
    if (this.#contexts.size >= MAX_SECURE_CONTEXTS) this.#evictOldest();
    this.#contexts.set(host, made);
    return made.context;
  }

  /** The system's bundle with this authority at its end: for variables like SSL_CERT_FILE that replace the system store. */
  bundlePem(systemBundle: string): string {
    const before = systemBundle.trimEnd();
    return before === '' ? this.certPem : `${before}\n${this.certPem}`;
  }

  /** Forgets the contexts and refuses new ones; connections that hold a context go on. */
  close(): void {
    this.#isClosed = true;
    this.#contexts.clear();
    this.#ticketKeys.fill(0);
  }

  #makeContext(host: string): CachedContext {
    const { leaf, notAfter } = this.#sign(host);
    const context = createSecureContext({
      // Without the authority: who trusts it has it, and OpenSSL would parse it again for every host.
      cert: leaf,
      key: this.#leafKeyPem,
      minVersion: 'TLSv1.2',
      ticketKeys: this.#ticketKeys,
    });
    return { context, renewAtMs: notAfter.getTime() - LEAF_RENEW_BEFORE_MS };
  }

  #evictOldest(): void {
    const oldest = this.#contexts.keys().next();
    if (oldest.done !== true) this.#contexts.delete(oldest.value);
  }

  #sign(destination: string): { leaf: string; notAfter: Date } {
    if (this.#isClosed) throw new VaultError('VAULT_CLOSED', 'Cannot issue a certificate: the authority is closed');
    if (!isDestination(destination)) {
      throw new VaultError('VAULT_NAME_MALFORMED', 'Cannot issue a certificate: the destination is not canonical');
    }
    const now = this.#now();
    if (now >= this.notAfter.getTime()) throw expired(this.notAfter.toUTCString());
    const notBefore = new Date(Math.max(now - BACKDATE_MS, this.notBefore.getTime()));
    const notAfter = new Date(Math.min(now + LEAF_LIFETIME_MS, this.notAfter.getTime()));
    const der = buildLeaf({
      destination,
      serial: randomSerial(),
      subjectKey: this.#leafSubjectKey,
      issuer: this.#issuer,
      notBefore,
      notAfter,
    });
    return { leaf: toPem('CERTIFICATE', der), notAfter };
  }
}

interface CachedContext {
  readonly context: SecureContext;
  readonly renewAtMs: number;
}

function isDestination(text: string): boolean {
  if (isIP(text) !== 0) return !text.includes('%');
  return text.length <= MAX_NAME_CHARS && CANONICAL_NAME.test(text);
}

/** Positive and of full length: top bit clear, the next one set (RFC 5280 section 4.1.2.2). */
function randomSerial(): Buffer {
  const serial = randomBytes(SERIAL_BYTES);
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  return serial;
}

/** The legacy object gives the name decoded; the `subject` text would be escaped. Anything but one name is not ours. */
function commonNameOf(certificate: X509Certificate): string {
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

function unpack(packed: Buffer): { certificate: X509Certificate; privateKey: KeyObject } {
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

function expired(at: string): VaultError {
  return new VaultError('VAULT_CA_EXPIRED', `Cannot use the authority: it ended ${at}`);
}
