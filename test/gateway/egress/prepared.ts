/** A prepared credential as the vault would make it, for tests of the data path alone. */
import type { PreparedCredential } from '../../../vault/index.ts';

export function preparedCredential(secret: string): PreparedCredential {
  const spec = {
    name: 'token',
    secret: 'vault:token',
    bind: { hosts: ['a.example'], methods: [], paths: [], ports: [] },
    inject: { kind: 'header', header: 'authorization', format: 'Bearer {secret}' },
    allowCleartext: false,
    onClientCredential: 'deny',
    line: 1,
  } as const;
  return {
    credential: { id: 0, spec, slot: 'authorization' },
    name: 'token',
    version: '1',
    slot: 'authorization',
    line: Buffer.from(`authorization: Bearer ${secret}\r\n`),
    echoes: [Buffer.from(`Bearer ${secret}`), Buffer.from(secret)],
  };
}
