/** What a target of the egress bench is: something that can be looked for, started and stopped. */
import type { Access } from '../access.ts';
import type { Pki } from '../pki.ts';
import type { Undo } from '../undo.ts';

export interface PeerContext {
  readonly pki: Pki;
  /** Loopback port of the origin. */
  readonly originPort: number;
  /** CPU the target is pinned to; null = anywhere. */
  readonly cpu: number | null;
  /** Node binary for targets that run on Node. */
  readonly nodePath: string;
  /** What is started goes on this list at once. */
  readonly undo: Undo;
}

export interface RunningPeer {
  readonly access: Access;
  /** Root of its process tree; null = no process of its own. */
  readonly pid: number | null;
  /** The last it has written to stdout and stderr, for the message of a failed check. */
  said(): string;
  /** Ends it; may be called twice. */
  stop(): Promise<void>;
}

export interface Peer {
  readonly name: string;
  /** One line for people. */
  readonly title: string;
  /** Debian packages that have it. */
  readonly packages: readonly string[];
  /** It only passes bytes on: no policy, no injection to check. */
  readonly isFloor?: boolean;
  /** null = it can be started; else what is missing. */
  available(): string | null;
  /** Writes its configuration into `dir` (empty, its own) and starts it. @throws Error */
  start(dir: string, context: PeerContext): Promise<RunningPeer>;
}

/** null, or what is missing of `parts` (name → found or not). */
export function missing(parts: Readonly<Record<string, boolean>>, packages: readonly string[]): string | null {
  const absent = Object.keys(parts).filter((name) => parts[name] !== true);
  if (absent.length === 0) return null;
  const from = packages.length === 0 ? '' : ` (Debian: ${packages.join(' ')})`;
  return `${absent.join(', ')} not found${from}`;
}
