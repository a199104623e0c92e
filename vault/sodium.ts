/** The only door to libsodium: nothing else in the house imports it. */
import sodium from 'libsodium-wrappers';

/** Length of every symmetric key here, in bytes. */
export const KEY_BYTES = 32;
/** XChaCha20's extended nonce: long enough that random nonces never repeat in practice. */
export const NONCE_BYTES = 24;
/** Poly1305 tag that every sealed text carries. */
export const TAG_BYTES = 16;
/** libsodium's KDF wants a context of exactly this many characters. */
const KDF_CONTEXT_CHARS = 8;

/** The few primitives this folder uses, synchronous once {@link openSodium} has resolved. */
export interface Sodium {
  /** XChaCha20-Poly1305 (IETF): ciphertext followed by its tag. */
  seal(key: Uint8Array, nonce: Uint8Array, plain: Uint8Array, aad: Uint8Array): Buffer;
  /** The plaintext, or undefined when the tag does not hold. */
  open(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array, aad: Uint8Array): Buffer | undefined;
  /** Subkey `id` of `key` under an 8-character context (BLAKE2b KDF). */
  deriveKey(key: Uint8Array, id: number, context: string): Buffer;
  /** Keyed BLAKE2b-256: a PRF over a message of any length. */
  keyedHash(key: Uint8Array, message: Uint8Array): Buffer;
  /** Overwrites with zeros. */
  wipe(bytes: Uint8Array): void;
}

/** Loads the WebAssembly module once per process. */
export async function openSodium(): Promise<Sodium> {
  await sodium.ready;
  return primitives;
}

const primitives: Sodium = {
  seal(key, nonce, plain, aad) {
    return asBuffer(sodium.crypto_aead_xchacha20poly1305_ietf_encrypt(plain, aad, null, nonce, key));
  },

  open(key, nonce, sealed, aad) {
    if (sealed.length < TAG_BYTES) return undefined;
    try {
      return asBuffer(sodium.crypto_aead_xchacha20poly1305_ietf_decrypt(null, sealed, aad, nonce, key));
    } catch {
      // The wrapper reports a wrong tag by throwing; key and nonce lengths are fixed by our callers, so nothing else ends here.
      return undefined;
    }
  },

  deriveKey(key, id, context) {
    if (context.length !== KDF_CONTEXT_CHARS) throw new RangeError('a KDF context has 8 characters');
    return asBuffer(sodium.crypto_kdf_derive_from_key(KEY_BYTES, id, context, key));
  },

  keyedHash(key, message) {
    return asBuffer(sodium.crypto_generichash(KEY_BYTES, message, key));
  },

  wipe(bytes) {
    sodium.memzero(bytes);
  },
};

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
