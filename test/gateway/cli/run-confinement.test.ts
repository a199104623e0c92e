/** What `run` does not promise in this version, held to here so that the README cannot promise more. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { repositoryRoot } from '../../kit/source-tree.ts';

const main = join(repositoryRoot, 'dist/gateway/cli/main.js');
const policyText = `version: 1
name: nothing
rules: [{ name: r, effect: allow, hosts: [a.example.com] }]
credentials: [{ name: key, secret: "env:API_KEY", bind: { hosts: [a.example.com] }, inject: { header: x-key } }]
`;

/** Listens on loopback and connects to itself without looking at any proxy variable. */
const goesAround = `
const net = require('node:net');
const server = net.createServer((socket) => socket.end('reached')).listen(0, '127.0.0.1', () => {
  net.connect(server.address().port, '127.0.0.1').on('data', (data) => console.log(String(data))).on('close', () => server.close());
});`;

/** The environment of a command, without the names that every process has. */
const showsProxy = `console.log(process.env.HTTPS_PROXY !== undefined, process.env.NODE_EXTRA_CA_CERTS !== undefined);`;

/** What every process may know of another one of its user. */
const looksAround = `
const environment = require('node:fs').readFileSync('/proc/' + process.ppid + '/environ', 'latin1');
console.log(environment.includes('operator-secret'), JSON.stringify(process.env).includes('operator-secret'));`;

function run(t: { teardown(end: () => void): void }, script: string, env: Record<string, string> = {}) {
  const home = mkdtempSync(join(tmpdir(), 'sallyport-run-'));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const policy = join(home, 'nothing.yaml');
  writeFileSync(policy, policyText);
  const args = [main, 'run', '--home', join(home, 'home'), '--policy', policy, '--', process.execPath, '-e', script];
  return spawnSync(process.execPath, args, {
    encoding: 'utf8',
    timeout: 60_000,
    env: { PATH: process.env.PATH, HOME: home, ...env },
  });
}

test('run sets the proxy and CA variables of its command', (t) => {
  const done = run(t, showsProxy);
  t.is(done.status, 0, done.stderr);
  t.is(done.stdout, 'true true\n');
});

test('run does not hold back a command that ignores its proxy, and says so', (t) => {
  const done = run(t, goesAround);
  t.is(done.status, 0, done.stderr);
  t.is(done.stdout, 'reached\n');
  t.regex(done.stderr, /is not held back by this version/);
});

const testWithProc = existsSync('/proc/self/environ') ? test : test.skip;
testWithProc('run withholds a secret from its command, not from a command of the same user that looks for it', (t) => {
  const done = run(t, looksAround, { API_KEY: 'operator-secret-0123456789' });
  t.is(done.status, 0, done.stderr);
  t.is(done.stdout, 'true false\n');
});
