/** Limits of every parser and matcher in this folder. Past a limit the answer is always a refusal. */

/** RFC 1035 section 2.3.4, without the root dot: 253 characters. */
export const MAX_HOST_LENGTH = 253;

/** RFC 1035 section 2.3.4. */
export const MAX_LABEL_LENGTH = 63;

/** `[IPv6]:port` and `name:port` both fit; anything longer is refused before it is looked at. */
export const MAX_AUTHORITY_LENGTH = MAX_HOST_LENGTH + 1 + 1 + 5;

/** A request target of 16 KiB is what common servers accept; longer is answered 414. */
export const MAX_TARGET_BYTES = 16 * 1024;

/** Host names in a policy file may be written in Unicode, four times longer than their A-labels at most. */
export const MAX_POLICY_HOST_LENGTH = 4 * MAX_HOST_LENGTH;

/** Path patterns and query globs are read by people; a longer one is a mistake. */
export const MAX_PATTERN_LENGTH = 1024;

/** Bounds the work of one match to target bytes × segments. */
export const MAX_PATTERN_SEGMENTS = 32;

/** Stars in one query glob or one path segment; bounds the same product. */
export const MAX_GLOB_STARS = 8;

/** Registered methods are at most 17 characters; a longer token in a refusal is cut to this. */
export const MAX_METHOD_LENGTH = 32;

/** A path in a reason is cut to this many characters, so that a refusal stays a line. */
export const MAX_REASON_PATH_LENGTH = 160;

/** Allowed requests of a host named in a hint. */
export const MAX_HINT_EXAMPLES = 4;

/** Rules that one `decide` looks at one after the other before an index of first and last path segments pays. */
export const LINEAR_RULES = 6;

/** Decisions kept per rule for distinct sets of credentials; past it they are built again for each request. */
export const MAX_DECISIONS_PER_RULE = 64;
