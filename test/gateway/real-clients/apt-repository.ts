/** A flat Debian repository of packages that `dpkg-deb` builds, and the configuration apt needs to know only it. */
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestCertificate } from '../../kit/certificates.ts';
import { plainEnvironment, runCommand } from '../../kit/run-command.ts';
import { type LocalServer, send, startServer } from './https-server.ts';

export interface DebianPackage {
  readonly name: string;
  /** Below the repository: `pool/x.deb`. */
  readonly filename: string;
  readonly bytes: Buffer;
}

/** Serves `/debian/` with Release, Packages and the files. */
export function startRepository(
  certificate: TestCertificate,
  packages: readonly DebianPackage[],
): Promise<LocalServer> {
  const list = packages.map(stanza).join('\n');
  const files = new Map<string, string | Buffer>(packages.map((one) => [`/debian/${one.filename}`, one.bytes]));
  files.set('/debian/Packages', list);
  files.set('/debian/Release', release(list));
  return startServer(certificate, (request, response) => {
    const body = files.get(request.url ?? '');
    return body === undefined
      ? send(response, 'text/plain', 'not found', 404)
      : send(response, 'application/octet-stream', body);
  });
}

/** Builds an empty package that installs anywhere. */
export async function buildDebianPackage(directory: string, name: string, filename: string): Promise<DebianPackage> {
  const source = join(directory, `${name}-source`);
  await mkdir(join(source, 'DEBIAN'), { recursive: true });
  await writeFile(join(source, 'DEBIAN', 'control'), control(name));
  const built = join(directory, `${name}.deb`);
  const done = await runCommand('dpkg-deb', ['--build', '--root-owner-group', source, built], {
    env: plainEnvironment(directory),
  });
  if (done.code !== 0) throw new Error(`dpkg-deb: ${done.stderr}`);
  return { name, filename, bytes: await readFile(built) };
}

/** Writes an apt configuration with every folder below `home`, so that it works for any user; returns its path for `APT_CONFIG`. */
export async function writeAptConfig(home: string, source: string): Promise<string> {
  for (const folder of ['state/lists/partial', 'cache/archives/partial', 'etc/preferences.d', 'etc/apt.conf.d']) {
    await mkdir(join(home, folder), { recursive: true });
  }
  await writeFile(join(home, 'status'), '');
  await writeFile(join(home, 'etc', 'sources.list'), `${source}\n`);
  const settings = {
    'Dir::State': join(home, 'state'),
    'Dir::State::status': join(home, 'status'),
    'Dir::Cache': join(home, 'cache'),
    'Dir::Etc': join(home, 'etc'),
    'Dir::Etc::sourceparts': '-',
    'Dir::Log': join(home, 'log'),
    // As root apt drops to a user that cannot read a temporary directory of ours.
    'APT::Sandbox::User': 'root',
    'Acquire::Retries': '0',
    'Acquire::Languages': 'none',
    'Acquire::http::Timeout': '20',
    'Acquire::https::Timeout': '20',
  };
  const path = join(home, 'apt.conf');
  await writeFile(
    path,
    Object.entries(settings)
      .map(([key, value]) => `${key} "${value}";\n`)
      .join(''),
  );
  return path;
}

function control(name: string): string {
  return [
    `Package: ${name}`,
    'Version: 1.0',
    'Architecture: all',
    'Maintainer: Test <test@acme.test>',
    'Description: nothing',
    '',
  ].join('\n');
}

function stanza(one: DebianPackage): string {
  const digest = createHash('sha256').update(one.bytes).digest('hex');
  return `${control(one.name)}Filename: ./${one.filename}\nSize: ${one.bytes.length}\nSHA256: ${digest}\n`;
}

function release(list: string): string {
  const digest = createHash('sha256').update(list).digest('hex');
  return [
    'Origin: Test',
    `Date: ${new Date().toUTCString().replace('GMT', 'UTC')}`,
    'SHA256:',
    ` ${digest} ${Buffer.byteLength(list)} Packages`,
    '',
  ].join('\n');
}
