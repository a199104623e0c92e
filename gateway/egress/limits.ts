/**
 * Every bound of the egress path in one place: sizes in bytes, times in milliseconds.
 * A test may tighten them through {@link EgressLimits}; nothing widens them at run time.
 */
export interface EgressLimits {
  /** Request or response head, request line included (larger: 431, from upstream 502). SDK heads are 1–4 KiB. */
  readonly headBytes: number;
  /** TLS ClientHello reassembled from any number of records; a post-quantum hello is about 2 KiB, RFC 8446 allows 2^24. */
  readonly helloBytes: number;
  /** From the first byte of a head to its end (408). */
  readonly headMs: number;
  /** A client connection with no request under way. */
  readonly idleMs: number;
  /** From accept or CONNECT to a finished TLS handshake with the client. */
  readonly handshakeMs: number;
  /** DNS, TCP and TLS to an upstream together (504). */
  readonly connectMs: number;
  /** From a sent request to the head of its response (504). Long answers of models without streaming take minutes. */
  readonly responseHeadMs: number;
  /** Between two reads or writes of a body under way. */
  readonly stallMs: number;
  /** After a refusal, how long and how much of an unread body is discarded so that the client can read the answer. */
  readonly lingerMs: number;
  readonly lingerBytes: number;
  /** Idle upstream connections: each kept this long, and not used again when older than `upstreamAgeMs` (DNS may have changed). */
  readonly upstreamIdleMs: number;
  readonly upstreamAgeMs: number;
  readonly upstreamIdlePerKey: number;
  readonly upstreamIdleTotal: number;
  /** Open client connections in all, and of one caller (503). */
  readonly connections: number;
  readonly connectionsPerCaller: number;
  /** Graceful stop: requests under way get this long. */
  readonly drainMs: number;
}

export const defaultLimits: EgressLimits = {
  headBytes: 64 * 1024,
  helloBytes: 32 * 1024,
  headMs: 30_000,
  idleMs: 120_000,
  handshakeMs: 15_000,
  connectMs: 15_000,
  responseHeadMs: 600_000,
  stallMs: 300_000,
  lingerMs: 2_000,
  lingerBytes: 1024 * 1024,
  upstreamIdleMs: 30_000,
  upstreamAgeMs: 300_000,
  upstreamIdlePerKey: 64,
  upstreamIdleTotal: 2_048,
  connections: 10_000,
  connectionsPerCaller: 2_000,
  drainMs: 10_000,
};

/** Header lines of one head: a fixed table, so it is not an option (more: 431). */
export const MAX_HEADERS = 160;

/** One line of chunked framing, extension included: RFC 9112 §7.1.1 lets a recipient bound it. */
export const MAX_CHUNK_LINE = 256;

/** Digits of a chunk size: 2^48 is above any real body and far below 2^53. */
export const MAX_CHUNK_DIGITS = 12;

/** All trailer bytes of one body; they are dropped, so only their reading is bounded. */
export const MAX_TRAILER_BYTES = 16 * 1024;

/** Chunk framing beyond this that is also more than four times the data: somebody is paying us to parse nothing (413). */
export const MAX_CHUNK_OVERHEAD = 1024 * 1024;
