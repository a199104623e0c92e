/** Whether a target really does the job before it is measured: a proxy that forgets to check is fast. */
import { createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { type Access, ConnectRefused, openConnection } from './access.ts';
import type { OriginSeen } from './origin.ts';
import { ResponseReader } from './response-reader.ts';
import type { Worker } from './worker.ts';
import { measuredRequest, ORIGIN_BODY, requestBytes, SECRET, UNLISTED_HOST, type WireRequest } from './workload.ts';

const ANSWER_TIMEOUT_MS = 10_000;

interface Checked {
  readonly status: number;
  /** null for refusals: only their status line is read, bodies differ in framing. */
  readonly body: string | null;
}

/** What is wrong with the target; empty = it may be measured. A floor target is only asked for an answer. */
export async function checkTarget(access: Access, origin: Worker, isFloor: boolean): Promise<readonly string[]> {
  const context = createSecureContext({ ca: access.caPem });
  const allowed = measuredRequest(0);
  const wrong = await findings(() => checkAllowed(access, context, origin, allowed, isFloor));
  if (isFloor) return wrong;
  const denied: Readonly<Record<string, WireRequest>> = {
    'path of no rule': { ...allowed, path: '/admin/keys' },
    'path one byte off the prefix': { ...allowed, path: allowed.path.replace(/^(\/v[0-9])\//, '$1x') },
    'method of no rule': { ...allowed, method: 'DELETE' },
    'host of no rule': { ...allowed, host: UNLISTED_HOST },
  };
  for (const [what, request] of Object.entries(denied)) {
    const found = await findings(() => checkDenied(access, context, origin, request));
    wrong.push(...found.map((text) => `${what}: ${text}`));
  }
  return wrong;
}

/** A target that breaks a connection or never answers fails its check like one that answers wrongly. */
async function findings(check: () => Promise<string[]>): Promise<string[]> {
  try {
    return await check();
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

async function checkAllowed(
  access: Access,
  context: SecureContext,
  origin: Worker,
  request: WireRequest,
  isFloor: boolean,
): Promise<string[]> {
  const before = await origin.call<OriginSeen>('seen');
  const answer = await exchange(access, context, request, true);
  const after = await origin.call<OriginSeen>('seen');
  if (answer.status !== 200) return [`allowed request was answered ${answer.status}`];
  const wrong: string[] = [];
  if (answer.body !== ORIGIN_BODY) wrong.push('the body is not the one the origin sent');
  if (after.requests !== before.requests + 1) wrong.push('the origin did not see exactly one request');
  if (!after.lastHead.startsWith(`GET ${request.path} HTTP/1.1\r\n`)) wrong.push('the origin saw another request line');
  const sent = after.lastHead.split('\r\n').filter((line) => /^authorization:/i.test(line));
  const values = sent.map((line) => line.slice(line.indexOf(':') + 1).trim());
  const isInjected = values.length === 1 && values[0] === `Bearer ${SECRET}`;
  if (!isFloor && !isInjected) wrong.push('the credential was not injected in place of what the client sent');
  return wrong;
}

async function checkDenied(
  access: Access,
  context: SecureContext,
  origin: Worker,
  request: WireRequest,
): Promise<string[]> {
  const before = await origin.call<OriginSeen>('seen');
  const answer = await exchange(access, context, request, false);
  const after = await origin.call<OriginSeen>('seen');
  const wrong: string[] = [];
  if (answer.status !== 403) wrong.push(`answered ${answer.status}, not 403`);
  if (after.requests !== before.requests) wrong.push('the origin saw it');
  return wrong;
}

/** One request on a connection of its own; a refusal of CONNECT counts as the answer. */
async function exchange(
  access: Access,
  context: SecureContext,
  request: WireRequest,
  keepBody: boolean,
): Promise<Checked> {
  let socket: TLSSocket;
  try {
    socket = await openConnection(access, request.host, context);
  } catch (error) {
    if (error instanceof ConnectRefused) return { status: error.status, body: null };
    throw error;
  }
  try {
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => socket.destroy(new Error('Cannot check target: no answer in time')));
    socket.write(requestBytes(request, access.hostPort));
    return await (keepBody ? readAnswer(socket) : readStatus(socket));
  } finally {
    socket.destroy();
  }
}

async function readAnswer(socket: TLSSocket): Promise<Checked> {
  const reader = new ResponseReader({ keepBody: true });
  for await (const chunk of socket) {
    const answer = reader.push(chunk);
    if (answer !== null) return { status: answer.status, body: answer.body.toString('latin1') };
  }
  throw new Error('Cannot check target: it closed without an answer');
}

async function readStatus(socket: TLSSocket): Promise<Checked> {
  let head = '';
  for await (const chunk of socket) {
    head += chunk.toString('latin1');
    const status = /^HTTP\/1\.[01] ([0-9]{3})/.exec(head)?.[1];
    if (status !== undefined) return { status: Number(status), body: null };
  }
  throw new Error('Cannot check target: it closed without an answer');
}
