/** The interception authority: signs one short-lived leaf per destination so that the gateway can read what a sandbox sends. */
import { generateKeyPairSync, type KeyObject, randomBytes, type X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import { authoritySubject, buildLeaf, type Issuer, type SubjectKey, subjectKeyOf } from './certificate.ts';
import { VaultError } from './errors.ts';
import {
  commonNameOf,
  type NewAuthority,
  packNewAuthority,
  randomSerial,
  unpackAuthority,
} from './packed-authority.ts';
import { toPem } from './pem.ts';
import type { SealedPurpose } from './purposes.ts';
import type { Leaf } from './types.ts';

/** Where the authority's key is kept: the sealed file, or anything else with the same doors. */
export interface CaStore {
  seal(purpose: SealedPurpose, name: string, bytes: Buffer): Promise<void>;
  /** What is sealed, or what `make` gives, sealed now: the same bytes for all who ask at once. */
  obtain(purpose: SealedPurpose, name: string, make: () => Buffer): Promise<Buffer>;
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
/** OpenSSL's ticket key: 16 name, 16 HMAC, 16 AES. */
const TICKET_KEY_BYTES = 48;
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
    const packed = packNewAuthority(requestOf(options));
    try {
      await options.store?.seal(STORE_PURPOSE, STORE_NAME, packed);
      return InterceptionCa.#fromPacked(packed, options.now);
    } finally {
      packed.fill(0);
    }
  }

  /**
   * Opens the authority that the store holds.
   * @throws VaultError `VAULT_SECRET_MISSING` (none there yet), `VAULT_CA_CORRUPT`, `VAULT_CA_EXPIRED`
   */
  static load(options: CaOptions & { readonly store: CaStore }): InterceptionCa {
    const packed = options.store.unseal(STORE_PURPOSE, STORE_NAME);
    try {
      return InterceptionCa.#fromPacked(packed, options.now);
    } finally {
      packed.fill(0);
    }
  }

  /**
   * The authority that the store holds, made now if there is none; gateways that start at once get the same one.
   * @throws VaultError like {@link create} and {@link load}
   */
  static async open(options: CaCreateOptions & { readonly store: CaStore }): Promise<InterceptionCa> {
    const packed = await options.store.obtain(STORE_PURPOSE, STORE_NAME, () => packNewAuthority(requestOf(options)));
    try {
      return InterceptionCa.#fromPacked(packed, options.now);
    } finally {
      packed.fill(0);
    }
  }

  static #fromPacked(packed: Buffer, now: () => number = Date.now): InterceptionCa {
    const { certificate, privateKey } = unpackAuthority(packed);
    if (now() >= new Date(certificate.validTo).getTime()) throw expired(certificate.validTo);
    return new InterceptionCa(certificate, privateKey, now);
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

function requestOf(options: CaCreateOptions): NewAuthority {
  const now = (options.now ?? Date.now)();
  const { commonName } = options;
  const validity = { notBefore: new Date(now - BACKDATE_MS), notAfter: new Date(now + CA_LIFETIME_MS) };
  return commonName === undefined ? validity : { ...validity, commonName };
}

function isDestination(text: string): boolean {
  if (isIP(text) !== 0) return !text.includes('%');
  return text.length <= MAX_NAME_CHARS && CANONICAL_NAME.test(text);
}

function expired(at: string): VaultError {
  return new VaultError('VAULT_CA_EXPIRED', `Cannot use the authority: it ended ${at}`);
}
