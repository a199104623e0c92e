/** Child of crash.test.ts: writes records as fast as it can until it is killed, and tells the parent how far it came. */
import { AuditLog, createAuditSigner } from '../../../gateway/audit/index.ts';
import { config, record } from './fixture.ts';

const [dir = '', keyPem = ''] = process.argv.slice(2);
const log = await AuditLog.open({
  dir,
  node: 'n1',
  signer: createAuditSigner(keyPem),
  config: { ...config, rotateBytes: 300_000 },
});

function burst(): void {
  for (let i = 0; i < 40; i++) {
    if (log.reserve()) log.request(record());
  }
  process.send?.(log.status().seq);
  setImmediate(burst);
}

burst();
