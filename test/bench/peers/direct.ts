/** The floor: the client talks to the origin itself. */
import { readPem } from '../pki.ts';
import type { Peer } from './peer.ts';

export const direct: Peer = {
  name: 'direct',
  title: 'no proxy at all',
  packages: [],
  isFloor: true,
  available: () => null,
  start: async (_dir, context) => ({
    access: { kind: 'sni', port: context.originPort, hostPort: 443, caPem: readPem(context.pki.originCa.cert) },
    pid: null,
    said: () => '',
    stop: async () => {},
  }),
};
