/** A small npm registry: packuments and tarballs of packages made with `npm pack`. */
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestCertificate } from '../../kit/certificates.ts';
import { plainEnvironment, runCommand } from '../../kit/run-command.ts';
import { type LocalServer, send, startServer } from './https-server.ts';

export interface RegistryPackage {
  /** With scope: `@acme/widget`. */
  readonly name: string;
  /** Where the packument says the tarball is. */
  readonly tarballUrl: string;
  readonly tarball: Buffer;
}

/** Serves packuments at `/@scope%2fname` and tarballs at the path of their URL. */
export function startRegistry(
  certificate: TestCertificate,
  packages: readonly RegistryPackage[],
): Promise<LocalServer> {
  return startServer(certificate, (request, response) => {
    const path = decodeURIComponent((request.url ?? '').split('?')[0] ?? '').slice(1);
    const packument = packages.find((one) => one.name === path);
    if (packument !== undefined) return send(response, 'application/json', JSON.stringify(packumentOf(packument)));
    const tarball = packages.find((one) => new URL(one.tarballUrl).pathname.slice(1) === path);
    if (tarball !== undefined) return send(response, 'application/octet-stream', tarball.tarball);
    return send(response, 'application/json', '{"error":"not found"}', 404);
  });
}

/** Packs a package of one module that exports `text`. */
export async function packModule(directory: string, name: string, text: string): Promise<Buffer> {
  const source = join(directory, name.replace(/[@/]/g, '_'));
  await mkdir(source, { recursive: true });
  await writeFile(join(source, 'package.json'), JSON.stringify({ name, version: '1.0.0', main: 'index.js' }));
  await writeFile(join(source, 'index.js'), `module.exports = ${JSON.stringify(text)};\n`);
  const done = await runCommand('npm', ['pack', '--json', '--ignore-scripts'], {
    cwd: source,
    // A cache of its own: `npm pack` leaves the tarball there, and an install would not ask the registry for it.
    env: { ...npmEnvironment(directory), npm_config_cache: join(directory, 'pack-cache') },
  });
  if (done.code !== 0) throw new Error(`npm pack: ${done.stderr}`);
  const tarball = done.stdout.match(/"filename":\s*"([^"]+)"/)?.[1] ?? '';
  return readFile(join(source, tarball));
}

/** An environment in which npm reads no configuration of the person and reports nothing home. */
export function npmEnvironment(home: string): Record<string, string> {
  return {
    ...plainEnvironment(home),
    npm_config_cache: join(home, 'npm-cache'),
    npm_config_userconfig: join(home, 'npmrc'),
    npm_config_globalconfig: join(home, 'npmrc-global'),
    npm_config_update_notifier: 'false',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_fetch_retries: '0',
  };
}

function packumentOf(one: RegistryPackage): object {
  const integrity = `sha512-${createHash('sha512').update(one.tarball).digest('base64')}`;
  const shasum = createHash('sha1').update(one.tarball).digest('hex');
  const version = {
    name: one.name,
    version: '1.0.0',
    main: 'index.js',
    dist: { tarball: one.tarballUrl, integrity, shasum },
  };
  return { name: one.name, 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } };
}
