/** What was judged is what is sent, whatever the sizes: requests and answers that try to fall apart into others. */
import anyTest, { type TestFn } from 'ava';
import { header } from '../../kit/http-message.ts';
import { request, tunnel, useStage } from '../bad-input/stage.ts';

const test = anyTest as TestFn;

const policy = `
version: 1
name: smuggling
rules:
  - { name: anything, effect: allow, hosts: [api.acme.test], paths: ["/open/**"] }
`;

const stage = useStage(test, () => ({ policy, tls: { 'api.acme.test': {} } }));
const host = 'Host: api.acme.test';

test.serial(
  'Exchange sends the whole head when the canonical path is three times as long as the one received',
  async (t) => {
    const here = stage();
    here.clear();
    const connection = await here.open(t, tunnel('api.acme.test:443'));
    const path = `/open/${'^'.repeat(16_000)}`;
    const body = `/../../closed HTTP/1.1\r\n${host}\r\n\r\n`;
    const answer = await connection.ask(
      `${request(`POST ${path} HTTP/1.1`, host, 'X-Last: 1', `Content-Length: ${body.length}`)}${body}`,
    );
    t.is(answer.status, 200);
    const [seen, ...more] = here.upstream('api.acme.test').requests;
    t.is(more.length, 0);
    t.true(seen?.target === `/open/${'%5E'.repeat(16_000)}`, 'the target is cut');
    t.is(header(seen?.headers ?? [], 'x-last'), '1');
    t.is(seen?.body.toString(), body);
  },
);
