/** Ours: the real gateway as a child process, with a policy of the same rules, injection and its audit log. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { missing, type Peer } from './peer.ts';

/** The built CLI, seen from dist/test/bench/peers/. */
const CLI = fileURLToPath(new URL('../../../gateway/cli/main.js', import.meta.url));

export const sallyport: Peer = {
  name: 'sallyport',
  title: 'the gateway',
  packages: [],
  available: () => missing({ 'dist/gateway/cli/main.js': existsSync(CLI) }, []),
  start: () => Promise.reject(new Error('Cannot start the gateway: not wired yet')),
};
