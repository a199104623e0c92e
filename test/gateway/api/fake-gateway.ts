/** A gateway of plain answers that notes what it was asked. */
import type { AttachOptions, Gateway, GatewayStatus } from '../../../gateway/api/index.ts';

export interface FakeGateway extends Gateway {
  readonly calls: unknown[];
}

export function fakeGateway(changes: Partial<Gateway> & { refusing?: string | null } = {}): FakeGateway {
  const calls: unknown[] = [];
  const status: GatewayStatus = {
    startedAt: '2026-01-02T03:04:05.000000Z',
    listeners: ['127.0.0.1:3128'],
    generation: 1,
    policies: [{ name: 'default', digest: 'sha256:00', rules: 2 }],
    callers: 0,
    audit: { records: 7 },
    refusing: changes.refusing ?? null,
    connections: 0,
    requests: 0,
  };
  return {
    calls,
    proxyAddresses: [{ host: '127.0.0.1', port: 3128 }],
    status: () => status,
    reload: async (actor) => {
      calls.push(['reload', actor]);
      return { ok: true, generation: 2, problems: '' };
    },
    selftest: async () => ({
      ok: true,
      checks: [{ name: 'metadata', ok: true, leaked: false, expected: '403', got: '403' }],
    }),
    attach: async (options: AttachOptions) => {
      calls.push(['attach', options]);
      return {
        id: 'sbx-1',
        token: 'a-token',
        proxyUrl: 'http://sbx-1:a-token@127.0.0.1:3128',
        socketPath: options.socket === true ? '/run/sbx-1.sock' : null,
        caBundlePath: '/home/ca.pem',
        environment: { HTTPS_PROXY: 'http://sbx-1:a-token@127.0.0.1:3128' },
      };
    },
    detach: async (id) => id === 'sbx-1',
    metrics: async () => '# HELP x y\nx 1\n',
    close: async () => {},
    ...changes,
  };
}
