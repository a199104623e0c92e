/** Cuts the lines of a response head that end at the gateway (RFC 9110 §7.6.1), in place. */
import { text } from './http/bytes.ts';
import { H } from './http/header-block.ts';
import type { ResponseHead } from './http/response-head.ts';

/**
 * Moves the kept lines up against the body, so that head and body stay one run of bytes.
 * @returns the new start of the head.
 */
export function cutHopLines(buf: Buffer, head: ResponseHead, dropFraming: boolean): number {
  const { headers } = head;
  let write = head.end - 2;
  let runEnd = write;
  for (let i = headers.count - 1; i >= 0; i--) {
    if (!isCut(headers.id[i] ?? 0, dropFraming) && !isOption(buf, head, i)) continue;
    const next = i + 1 < headers.count ? (headers.nameStart[i + 1] ?? 0) : head.end - 2;
    write = moveRun(buf, next, runEnd, write);
    runEnd = headers.nameStart[i] ?? 0;
  }
  return moveRun(buf, head.start, runEnd, write);
}

function moveRun(buf: Buffer, start: number, end: number, write: number): number {
  const to = write - (end - start);
  if (to !== start) buf.copyWithin(to, start, end);
  return to;
}

/** Named by the Connection header (RFC 9110 §7.6.1). Framing stays ours to judge, whatever an upstream lists. */
function isOption(buf: Buffer, { headers, connectionOptions }: ResponseHead, index: number): boolean {
  if (connectionOptions.size === 0 || headers.id[index] !== H.OTHER) return false;
  const name = text(buf, headers.nameStart[index] ?? 0, headers.nameEnd[index] ?? 0).toLowerCase();
  return connectionOptions.has(name);
}

function isCut(id: number, dropFraming: boolean): boolean {
  switch (id) {
    case H.CONNECTION:
    case H.HOP:
    case H.PROXY_AUTHORIZATION:
    case H.UPGRADE:
    case H.ALT_SVC:
      return true;
    case H.TRANSFER_ENCODING:
      return dropFraming;
    default:
      return false;
  }
}
