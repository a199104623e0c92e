/** Builds the head that is sent: canonical target, only lines that may pass, our framing, credentials last. */

import type { PreparedCredential } from '../../vault/index.ts';
import { bytesEqual, copyBytes } from './http/bytes.ts';
import { H } from './http/header-block.ts';
import type { RequestHead } from './http/request-head.ts';
import type { Judged } from './judge.ts';
import { isSlot } from './judge.ts';

const IDENTITY = Buffer.from('accept-encoding: identity\r\n');
const CHUNKED = Buffer.from('transfer-encoding: chunked\r\n');
const CRLF = Buffer.from('\r\n');

/** Room for what the gateway adds by itself: Host, framing, version. */
const REWRITE_SLACK = 2048;

/** Bytes that `writeRequestHead` may need. A canonical path can be three times as long as the received one (`^` becomes `%5E`). */
export function rewriteRoom(head: RequestHead, judged: Judged, credentials: readonly PreparedCredential[]): number {
  let room = head.end - head.start + judged.requestLine.length + REWRITE_SLACK;
  for (const credential of credentials) room += credential.line.length;
  return room;
}

/**
 * Writes the head into `out`, which holds at least `rewriteRoom`, and returns its length.
 * @throws RangeError before a byte is written when `out` is smaller: a head cut short would let a body finish it.
 */
export function writeRequestHead(
  out: Buffer,
  head: RequestHead,
  judged: Judged,
  credentials: readonly PreparedCredential[],
): number {
  if (out.length < rewriteRoom(head, judged, credentials)) throw new RangeError('Cannot write head: too little room');
  const { headers, buf } = head;
  const { requestLine } = judged;
  let n = copyBytes(out, 0, requestLine, 0, requestLine.length);
  let runStart = -1;
  let hasHost = false;
  for (let i = 0; i < headers.count; i++) {
    const keep = isKept(head, i, judged, credentials);
    if (keep && headers.id[i] === H.HOST) hasHost = true;
    if (keep && runStart < 0) runStart = headers.nameStart[i] ?? 0;
    if (!keep && runStart >= 0) {
      n = copyBytes(out, n, buf, runStart, headers.nameStart[i] ?? 0);
      runStart = -1;
    }
  }
  if (runStart >= 0) n = copyBytes(out, n, buf, runStart, head.end - 2);
  if (!hasHost) n += out.write(`host: ${judged.scope.authority}\r\n`, n, 'latin1');
  if (head.chunked) n = copyBytes(out, n, CHUNKED, 0, CHUNKED.length);
  if (credentials.length > 0) {
    // An echoed secret can only be found in bytes that are not compressed.
    n = copyBytes(out, n, IDENTITY, 0, IDENTITY.length);
    for (const { line: injected } of credentials) n = copyBytes(out, n, injected, 0, injected.length);
  }
  return copyBytes(out, n, CRLF, 0, CRLF.length);
}

function isKept(head: RequestHead, i: number, judged: Judged, credentials: readonly PreparedCredential[]): boolean {
  switch (head.headers.id[i]) {
    case H.HOST: {
      const start = head.headers.valueStart[i] ?? 0;
      return bytesEqual(head.buf, start, head.headers.valueEnd[i] ?? 0, judged.scope.authorityBytes);
    }
    case H.CONNECTION:
    case H.TRANSFER_ENCODING:
    case H.UPGRADE:
    case H.PROXY_AUTHORIZATION:
    case H.HOP:
    case H.CLAIM:
      return false;
    case H.CONTENT_LENGTH:
      return true;
    case H.ACCEPT_ENCODING:
      if (credentials.length > 0) return false;
      break;
    default:
  }
  for (const credential of credentials) if (isSlot(head, i, credential.slot)) return false;
  return !(head.hasConnectionOptions && head.isConnectionOption(i));
}
