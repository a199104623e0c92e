/** Takes the path of the control socket: a private folder, no living gateway behind it, no leftover of a dead one. */
import { lstatSync, mkdirSync, type Stats, unlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { GatewayError } from '../errors.ts';

/** What is at a socket path: somebody answers, a dead process left it, nothing, or something that is no socket. */
export type SocketState = 'live' | 'stale' | 'absent' | 'occupied';

/** Looks whether somebody answers on a Unix socket. */
export async function probeSocket(path: string): Promise<SocketState> {
  const found = statOf(path);
  if (found === null) return 'absent';
  if (!found.isSocket()) return 'occupied';
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.setTimeout(PROBE_TIMEOUT_MS, () => finish('live'));
    socket.once('connect', () => finish('live'));
    // ECONNREFUSED is the kernel's word that nobody listens; anything else (EACCES, EAGAIN) may well be a living one.
    socket.once('error', (error: NodeJS.ErrnoException) => finish(stateOf(error.code)));
    function finish(state: SocketState): void {
      socket.destroy();
      resolve(state);
    }
  });
}

/**
 * Makes the way free for `listen`. Two gateways cannot race here: each holds the audit lock before it comes this far.
 * @throws GatewayError `GATEWAY_LISTEN_FAILED` when a gateway answers, something else lies there, or others can reach the folder
 */
export async function claimSocket(path: string): Promise<void> {
  makePrivateFolder(dirname(path), path);
  const state = await probeSocket(path);
  if (state === 'live') throw refuse(path, 'another gateway answers there');
  if (state === 'occupied') throw refuse(path, 'something that is not a socket lies there');
  if (state === 'stale') unlinkSync(path);
}

// A living gateway accepts at once; a full backlog for this long is a living one too.
const PROBE_TIMEOUT_MS = 1000;

function makePrivateFolder(folder: string, path: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const found = statOf(folder);
  if (found === null || !found.isDirectory()) throw refuse(path, 'its folder is not a directory');
  const uid = process.geteuid?.();
  if (uid !== undefined && found.uid !== uid) throw refuse(path, 'its folder belongs to another user');
  // Between `listen` and `chmod` the socket has the umask's mode: only a private folder keeps others out meanwhile.
  if ((found.mode & 0o077) !== 0) throw refuse(path, 'its folder is open to other users (chmod 700 it)');
}

function stateOf(code: string | undefined): SocketState {
  if (code === 'ENOENT') return 'absent';
  return code === 'ECONNREFUSED' ? 'stale' : 'live';
}

function statOf(path: string): Stats | null {
  return lstatSync(path, { throwIfNoEntry: false }) ?? null;
}

function refuse(path: string, state: string): GatewayError {
  return new GatewayError('GATEWAY_LISTEN_FAILED', `Cannot listen on control socket ${path}: ${state}`);
}
