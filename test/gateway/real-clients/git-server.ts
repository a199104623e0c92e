/** Git over smart HTTP: `git http-backend` as a CGI program behind a small server. */
import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { TestCertificate } from '../../kit/certificates.ts';
import { plainEnvironment, runCommand } from '../../kit/run-command.ts';
import { type LocalServer, startServer } from './https-server.ts';

/** Serves `root` (bare repositories), clone and push alike. */
export function startGitServer(certificate: TestCertificate, root: string): Promise<LocalServer> {
  return startServer(certificate, (request, response) => backend(root, request, response));
}

/** Makes a bare repository with one commit of one file, open for push. */
export async function makeRepository(root: string, path: string, file: { name: string; text: string }): Promise<void> {
  const work = join(root, 'work');
  await mkdir(work, { recursive: true });
  await writeFile(join(work, file.name), file.text);
  const env = gitEnvironment(root);
  await git(['init', '-q', '-b', 'main', work], env);
  await git(['-C', work, 'add', '.'], env);
  await git(['-C', work, 'commit', '-q', '-m', 'first'], env);
  await git(['clone', '-q', '--bare', work, join(root, path)], env);
  await git(['-C', join(root, path), 'config', 'http.receivepack', 'true'], env);
}

/** An environment in which git reads no configuration of the machine and never asks. */
export function gitEnvironment(home: string): Record<string, string> {
  const person = { GIT_AUTHOR_NAME: 'Test', GIT_AUTHOR_EMAIL: 'test@acme.test' };
  return {
    ...plainEnvironment(home),
    ...person,
    GIT_COMMITTER_NAME: person.GIT_AUTHOR_NAME,
    GIT_COMMITTER_EMAIL: person.GIT_AUTHOR_EMAIL,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
  };
}

async function git(args: readonly string[], env: Record<string, string>): Promise<void> {
  const done = await runCommand('git', args, { env });
  if (done.code !== 0) throw new Error(`git ${args.join(' ')}: ${done.stderr}`);
}

/** RFC 3875 meta-variables that git-http-backend reads. */
function backend(root: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [path = '', query = ''] = (request.url ?? '').split('?');
  const headers = request.headers;
  const child = spawn('git', ['http-backend'], {
    env: {
      ...gitEnvironment(root),
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      REQUEST_METHOD: request.method ?? 'GET',
      PATH_INFO: path,
      QUERY_STRING: query,
      CONTENT_TYPE: headers['content-type'] ?? '',
      ...(headers['content-length'] === undefined ? {} : { CONTENT_LENGTH: headers['content-length'] }),
      HTTP_CONTENT_ENCODING: String(headers['content-encoding'] ?? ''),
      HTTP_GIT_PROTOCOL: String(headers['git-protocol'] ?? ''),
      REMOTE_ADDR: '127.0.0.1',
      REMOTE_USER: 'test',
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  // The backend may stop reading early; its answer tells why.
  child.stdin.on('error', () => {});
  request.pipe(child.stdin);
  return answerFrom(child.stdout, response);
}

async function answerFrom(output: NodeJS.ReadableStream, response: ServerResponse): Promise<void> {
  let pending = Buffer.alloc(0);
  let isHeadDone = false;
  for await (const part of output) {
    const bytes = Buffer.from(part);
    if (isHeadDone) {
      response.write(bytes);
      continue;
    }
    pending = Buffer.concat([pending, bytes]);
    const end = pending.indexOf('\r\n\r\n');
    if (end < 0) continue;
    writeHead(pending.toString('latin1', 0, end), response);
    response.write(pending.subarray(end + 4));
    isHeadDone = true;
  }
  response.end();
}

function writeHead(text: string, response: ServerResponse): void {
  for (const line of text.split('\r\n')) {
    const colon = line.indexOf(':');
    const [name, value] = [line.slice(0, colon), line.slice(colon + 1).trim()];
    if (name.toLowerCase() === 'status') response.statusCode = Number.parseInt(value, 10);
    else response.setHeader(name, value);
  }
}
