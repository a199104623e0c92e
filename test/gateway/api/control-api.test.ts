import { chmodSync, existsSync, linkSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { Client } from 'undici';
import {
  type ApiListener,
  controlClient,
  type Gateway,
  startControlApi,
  startHealthApi,
} from '../../../gateway/api/index.ts';
import { GatewayError, type GatewayErrorCode } from '../../../gateway/errors.ts';
import { fakeGateway } from './fake-gateway.ts';

function temporary(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'sp-api-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function started(t: ExecutionContext, gateway: Gateway = fakeGateway()) {
  const path = join(temporary(t), 'run', 'control.sock');
  const api = await startControlApi(gateway, path);
  const raw = new Client('http://x', { connect: { socketPath: path } });
  const client = controlClient(path);
  t.teardown(async () => {
    await client.close();
    await raw.destroy();
    await api.close();
  });
  return { path, api, client, raw };
}

async function failure(
  t: ExecutionContext,
  promise: Promise<unknown>,
  code: GatewayErrorCode,
  part: string,
): Promise<void> {
  const error = await t.throwsAsync(promise, { instanceOf: GatewayError });
  t.is(error?.code, code);
  t.true(error?.message.includes(part), error?.message);
}

test('startControlApi() makes the folder 0700 and the socket 0600, and removes it at close', async (t) => {
  const { path, api } = await started(t);
  t.is(statSync(path).mode & 0o777, 0o600);
  t.is(statSync(join(path, '..')).mode & 0o777, 0o700);
  await api.close();
  await api.close();
  t.false(existsSync(path));
});

test('controlClient() sees status, metrics, reload and self-test', async (t) => {
  const gateway = fakeGateway();
  const { client } = await started(t, gateway);
  t.deepEqual(await client.status(), gateway.status());
  t.is(await client.metrics(), '# HELP x y\nx 1\n');
  t.deepEqual(await client.reload(), { ok: true, generation: 2, problems: '' });
  t.like(await client.selftest(), { ok: true });
  t.deepEqual(gateway.calls, [['reload', `control-socket:uid=${process.getuid?.()}`]]);
});

test('controlClient() gives a refused reload as a report', async (t) => {
  const report = { ok: false, generation: 1, problems: 'default.yaml:3:1 no' };
  const { client } = await started(t, fakeGateway({ reload: async () => report }));
  t.like(await client.reload(), report);
});

test('controlClient() attaches and detaches', async (t) => {
  const gateway = fakeGateway();
  const { client } = await started(t, gateway);
  const attached = await client.attach({ policy: 'default', labels: { team: 'a' }, socket: true });
  t.is(attached.proxyUrl, 'http://sbx-1:a-token@127.0.0.1:3128');
  t.is(attached.socketPath, '/run/sbx-1.sock');
  t.deepEqual(attached.environment, { HTTPS_PROXY: 'http://sbx-1:a-token@127.0.0.1:3128' });
  const actor = `control-socket:uid=${process.getuid?.()}`;
  t.deepEqual(gateway.calls, [['attach', { policy: 'default', labels: { team: 'a' }, socket: true, actor }]]);
  t.true(await client.detach('sbx-1'));
  t.false(await client.detach('sbx-2'));
});

test('controlClient() says GATEWAY_NOT_RUNNING when nobody listens', async (t) => {
  const client = controlClient(join(temporary(t), 'none.sock'));
  await failure(t, client.status(), 'GATEWAY_NOT_RUNNING', 'none is running');
  await client.close();
  await client.close();
});

test('controlClient() passes on the code of an error of ours and hides any other', async (t) => {
  const missing = new GatewayError('GATEWAY_POLICY_MISSING', 'Cannot attach: there is no policy team-a');
  const attach = async (): Promise<never> => {
    throw missing;
  };
  const reload = async (): Promise<never> => {
    throw new Error('token=hunter2');
  };
  const { client } = await started(t, fakeGateway({ attach, reload }));
  await failure(
    t,
    client.attach({ policy: 'team-a', labels: {} }),
    'GATEWAY_CONTROL_FAILED',
    '(GATEWAY_POLICY_MISSING)',
  );
  const error = await t.throwsAsync(client.reload(), { instanceOf: GatewayError });
  t.true(error?.message.includes('(internal)'));
  t.false(error?.message.includes('hunter2'));
});

const refused: [string, { method: string; path: string; body?: string; type?: string }, number, string][] = [
  ['an unknown path', { method: 'GET', path: '/nowhere' }, 404, 'not_found'],
  ['a method the path does not take', { method: 'GET', path: '/admin/v1/reload' }, 404, 'not_found'],
  ['no body', { method: 'POST', path: '/admin/v1/sandboxes' }, 400, 'request_invalid'],
  ['no JSON', { method: 'POST', path: '/admin/v1/sandboxes', body: '{' }, 400, 'request_malformed'],
  [
    'another type',
    { method: 'POST', path: '/admin/v1/sandboxes', body: 'policy=a', type: 'text/plain' },
    400,
    'request_invalid',
  ],
  [
    'a type nobody knows',
    { method: 'POST', path: '/admin/v1/sandboxes', body: 'a', type: 'application/x' },
    415,
    'media_type',
  ],
  [
    'a policy name with a slash',
    { method: 'POST', path: '/admin/v1/sandboxes', body: '{"policy":"../x"}' },
    400,
    'request_invalid',
  ],
  [
    'a policy that is a number',
    { method: 'POST', path: '/admin/v1/sandboxes', body: '{"policy":1}' },
    400,
    'request_invalid',
  ],
  [
    'an unknown key',
    { method: 'POST', path: '/admin/v1/sandboxes', body: '{"policy":"a","x":1}' },
    400,
    'request_invalid',
  ],
  [
    'a label that is no text',
    { method: 'POST', path: '/admin/v1/sandboxes', body: '{"policy":"a","labels":{"k":1}}' },
    400,
    'request_invalid',
  ],
  [
    'a label with a line break',
    { method: 'POST', path: '/admin/v1/sandboxes', body: '{"policy":"a","labels":{"k":"a\\nb"}}' },
    400,
    'request_invalid',
  ],
  [
    '__proto__',
    { method: 'POST', path: '/admin/v1/sandboxes', body: '{"policy":"a","__proto__":{"x":1}}' },
    400,
    'request_malformed',
  ],
  [
    'a body that is too large',
    { method: 'POST', path: '/admin/v1/sandboxes', body: `{"policy":"${'a'.repeat(70_000)}"}` },
    413,
    'body_too_large',
  ],
  ['a reload with a body', { method: 'POST', path: '/admin/v1/reload', body: '{"x":1}' }, 400, 'request_invalid'],
  ['a sandbox id with a space', { method: 'DELETE', path: '/admin/v1/sandboxes/a%20b' }, 400, 'request_invalid'],
  ['a broken escape', { method: 'GET', path: '/admin/%zz' }, 400, 'request_malformed'],
];
for (const [name, call, status, code] of refused) {
  test(`the control API answers ${name} with ${status} and one shape of error`, async (t) => {
    const { raw } = await started(t);
    const { statusCode, body, headers } = await raw.request({
      // The table holds only methods undici knows.
      method: call.method as 'GET',
      path: call.path,
      ...(call.body === undefined
        ? {}
        : { body: call.body, headers: { 'content-type': call.type ?? 'application/json' } }),
    });
    const text = await body.text();
    t.is(statusCode, status, text);
    const { error } = JSON.parse(text) as { error: Record<string, string> };
    t.is(error.code, code);
    t.deepEqual(Object.keys(error).sort(), ['code', 'message', 'requestId']);
    t.is(headers['x-sallyport-request-id'], error.requestId);
  });
}

test('the control API answers what is no HTTP with the same shape of error', async (t) => {
  const { path } = await started(t);
  const answer = await new Promise<string>((resolve, reject) => {
    const socket = connect({ path }, () => socket.end('\x16\x03\x01 hello\r\n\r\n'));
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
    });
    socket.once('close', () => resolve(text)).once('error', reject);
  });
  t.true(answer.startsWith('HTTP/1.1 400 '));
  t.true(answer.includes('"code":"request_malformed"'));
});

test('startControlApi() refuses while another gateway answers there', async (t) => {
  const { path, client } = await started(t);
  await failure(t, startControlApi(fakeGateway(), path), 'GATEWAY_LISTEN_FAILED', 'another gateway answers');
  t.like(await client.status(), { generation: 1 });
});

test('startControlApi() takes over the socket of a dead gateway', async (t) => {
  const folder = temporary(t);
  const path = join(folder, 'control.sock');
  // A second link keeps the name alive after the server closed and unlinked its own.
  const dead = createServer().listen(path);
  await new Promise((resolve) => dead.once('listening', resolve));
  linkSync(path, `${path}.kept`);
  await new Promise((resolve) => dead.close(resolve));
  const api = await startControlApi(fakeGateway(), `${path}.kept`);
  t.teardown(() => api.close());
  const client = controlClient(`${path}.kept`);
  t.like(await client.status(), { generation: 1 });
  await client.close();
});

test('startControlApi() leaves alone what is not a socket', async (t) => {
  const path = join(temporary(t), 'control.sock');
  writeFileSync(path, 'mine');
  await failure(t, startControlApi(fakeGateway(), path), 'GATEWAY_LISTEN_FAILED', 'not a socket');
  t.true(existsSync(path));
});

test('startControlApi() refuses a folder that others can reach', async (t) => {
  const folder = temporary(t);
  chmodSync(folder, 0o755);
  await failure(
    t,
    startControlApi(fakeGateway(), join(folder, 'c.sock')),
    'GATEWAY_LISTEN_FAILED',
    'open to other users',
  );
});

async function health(
  t: ExecutionContext,
  gateway: Gateway,
): Promise<{ api: ApiListener; get: (path: string) => Promise<[number, string]> }> {
  const api = await startHealthApi(gateway, { host: '127.0.0.1', port: 0 });
  t.teardown(() => api.close());
  const get = async (path: string): Promise<[number, string]> => {
    const answer = await fetch(`http://${api.address}${path}`);
    return [answer.status, await answer.text()];
  };
  return { api, get };
}

test('startHealthApi() serves health and metrics', async (t) => {
  const { get } = await health(t, fakeGateway());
  t.deepEqual(await get('/healthz'), [200, '{"status":"ok"}']);
  t.deepEqual(await get('/readyz'), [200, '{"status":"ready"}']);
  t.deepEqual(await get('/metrics'), [200, '# HELP x y\nx 1\n']);
});

test('startHealthApi() is not ready while the gateway refuses, and does not say why', async (t) => {
  const { get } = await health(t, fakeGateway({ refusing: 'the metadata canary got through' }));
  t.deepEqual(await get('/readyz'), [503, '{"status":"refusing"}']);
  t.deepEqual(await get('/healthz'), [200, '{"status":"ok"}']);
});

test('the control socket says why the gateway refuses', async (t) => {
  const { raw } = await started(t, fakeGateway({ refusing: 'the metadata canary got through' }));
  const { statusCode, body } = await raw.request({ method: 'GET', path: '/readyz' });
  t.is(statusCode, 503);
  t.deepEqual(await body.json(), { status: 'refusing', reason: 'the metadata canary got through' });
});

for (const path of ['/admin/v1/status', '/admin/v1/sandboxes', '/admin/v1/reload', '/']) {
  test(`startHealthApi() does not know ${path}`, async (t) => {
    const { api } = await health(t, fakeGateway());
    for (const method of ['GET', 'POST']) {
      const answer = await fetch(`http://${api.address}${path}`, { method });
      t.is(answer.status, 404);
      await answer.text();
    }
  });
}

test('startHealthApi() says when the port is taken', async (t) => {
  const { api } = await health(t, fakeGateway());
  const port = Number(api.address.split(':')[1]);
  await failure(t, startHealthApi(fakeGateway(), { host: '127.0.0.1', port }), 'GATEWAY_LISTEN_FAILED', 'EADDRINUSE');
});
