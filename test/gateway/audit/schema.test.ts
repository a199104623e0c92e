import { Ajv2020 } from 'ajv/dist/2020.js';
import test from 'ava';
import { auditRecordSchema } from '../../../gateway/audit/index.ts';
import { openLog, readAll, tempDir, writeMany } from './fixture.ts';

test('auditRecordSchema() accepts when the log wrote the record, and refuses a changed one', async (t) => {
  const validate = new Ajv2020({ strict: false }).compile({ ...auditRecordSchema() });
  const dir = await tempDir(t);
  const log = await openLog(dir);
  writeMany(log, 2);
  writeMany(log, 1, () => ({
    sandbox: null,
    policy: null,
    rule: null,
    request: null,
    raw: 'x',
    upstream: null,
    response: null,
    credential: null,
  }));
  log.event({ kind: 'admin.start', sandbox: { id: 'a', labels: {} }, actor: 'root' });
  // Not closed in order: the next opening writes a gap.
  await log.flush();
  await log.close();
  const records = await readAll(dir);
  t.true(records.length >= 5);
  for (const record of records) {
    t.true(validate(record), JSON.stringify(validate.errors));
    t.false(validate({ ...record, hash: 'x' }));
    t.false(validate({ ...record, seq: 0 }));
    t.false(validate({ ...record, kind: 'other' }));
  }
});
