/** Properties of what the control socket takes. */
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { Client } from 'undici';
import { type Gateway, startControlApi } from '../../../gateway/api/index.ts';
import { scratchDirectory } from '../../kit/scratch.ts';
import { fakeGateway } from './fake-gateway.ts';

test('the control API answers any body with 201 or one shape of error, and attaches nothing else', async (t) => {
  const attached: unknown[] = [];
  const attach: Gateway['attach'] = (options) => {
    attached.push(options);
    return fakeGateway().attach(options);
  };
  const folder = await scratchDirectory();
  const socketPath = join(folder.path, 'run', 'control.sock');
  const api = await startControlApi(fakeGateway({ attach }), socketPath);
  const raw = new Client('http://x', { connect: { socketPath } });
  t.teardown(async () => {
    await raw.destroy();
    await api.close();
    await folder.remove();
  });
  const labels = fc.oneof(fc.dictionary(fc.string({ maxLength: 8 }), fc.oneof(fc.string(), fc.nat())), fc.jsonValue());
  const policy = fc.oneof(fc.constantFrom('a', 'team-b', '../x', '', 'A'), fc.jsonValue());
  const socket = fc.oneof(fc.boolean(), fc.constantFrom('true', 1, null));
  const asked = fc.record({ policy, labels, socket }, { requiredKeys: ['policy'] });
  const body = fc.oneof(
    fc.oneof(asked, fc.jsonValue()).map((value) => JSON.stringify(value)),
    fc.string({ unit: 'binary' }),
  );
  await fc.assert(
    fc.asyncProperty(body, async (text) => {
      const before = attached.length;
      const answer = await raw.request({
        method: 'POST',
        path: '/admin/v1/sandboxes',
        body: text,
        headers: { 'content-type': 'application/json' },
      });
      const given = JSON.parse(await answer.body.text()) as { error?: Record<string, string> };
      if (answer.statusCode === 201) return attached.length === before + 1 && given.error === undefined;
      const isShaped =
        Object.keys(given.error ?? {})
          .sort()
          .join() === 'code,message,requestId';
      return isShaped && answer.statusCode >= 400 && answer.statusCode < 500 && attached.length === before;
    }),
    { numRuns: 200, examples: [['{"policy":"a"}']] },
  );
  t.true(attached.length > 0);
  for (const one of attached) t.regex(Reflect.get(Object(one), 'policy'), /^[a-z0-9-]{1,63}$/);
  t.pass();
});
