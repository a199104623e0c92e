/** squid with ssl-bump: CONNECT, certificates minted by its helper, ACLs, header replaced, JSON log. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, startDaemon } from '../daemon.ts';
import { readPem } from '../pki.ts';
import { findFile, findProgram } from '../programs.ts';
import { RULES, SECRET, SHAPES, UNLISTED_HOST } from '../workload.ts';
import { missing, type Peer, type PeerContext, type RunningPeer } from './peer.ts';

const PACKAGES = ['squid-openssl'];
const SHARED_MEMORY = '/dev/shm';

export const squid: Peer = {
  name: 'squid',
  title: 'squid ssl-bump',
  packages: PACKAGES,
  available: () =>
    missing({ squid: findProgram('squid') !== null, security_file_certgen: certgen() !== null }, PACKAGES),
  start: startSquid,
};

async function startSquid(dir: string, context: PeerContext): Promise<RunningPeer> {
  const port = await freePort();
  const helper = certgen() ?? 'security_file_certgen';
  const made = spawnSync(helper, ['-c', '-s', join(dir, 'ssl_db'), '-M', '16MB'], { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(`Cannot make squid's certificate store: ${made.stderr}`);
  for (const shape of SHAPES) {
    const hosts = RULES.filter((rule) => rule.shape === shape).map((rule) => rule.host);
    writeFileSync(join(dir, `hosts-${shape.id}`), `${hosts.join('\n')}\n`);
  }
  // squid resolves by itself; the unlisted name resolves too, so that only its ACLs can be what refuses it.
  const names = [...RULES.map((rule) => rule.host), UNLISTED_HOST].map((host) => `127.0.0.1 ${host}`);
  writeFileSync(join(dir, 'hosts'), `${names.join('\n')}\n`);
  mkdirSync(join(dir, 'log'));
  if (process.geteuid?.() === 0) giveTo('proxy', join(dir, 'log'), join(dir, 'ssl_db'));
  writeFileSync(join(dir, 'squid.conf'), configuration(dir, port, helper, context));
  // A service name of its own keeps squid's shared memory and pid apart from a squid that may run on this machine.
  const service = `bench${process.pid}`;
  context.undo.add(() => removeSharedMemory(service));
  const args = ['-N', '-n', service, '-f', join(dir, 'squid.conf')];
  const daemon = await startDaemon(findProgram('squid') ?? 'squid', args, {
    cpu: context.cpu,
    port,
    undo: context.undo,
  });
  const caPem = readPem(context.pki.interceptCa.cert);
  const access = { kind: 'connect', port, hostPort: context.originPort, caPem, proxyAuthorization: null } as const;
  return { access, ...daemon };
}

/** One line a shape, not one a host: 3,000 `http_access` lines would be walked one by one, which nobody would run. */
function configuration(dir: string, port: number, helper: string, context: PeerContext): string {
  const { pki, originPort } = context;
  const shapes = SHAPES.map(
    ({ id, methods, prefix }) => `acl hosts${id} dstdomain "${dir}/hosts-${id}"
acl methods${id} method ${methods.join(' ')}
acl paths${id} urlpath_regex ^${prefix}
http_access allow CONNECT hosts${id}
http_access allow hosts${id} methods${id} paths${id}`,
  );
  const tls = `tls-cert=${pki.interceptCa.cert} tls-key=${pki.interceptCa.key}`;
  return `http_port 127.0.0.1:${port} ssl-bump generate-host-certificates=on dynamic_cert_mem_cache_size=16MB ${tls}
sslcrtd_program ${helper} -s ${dir}/ssl_db -M 16MB
sslcrtd_children 2 startup=1 idle=1
tls_outgoing_options cafile=${pki.originCa.cert} flags=NO_DEFAULT_CA min-version=1.2
acl step1 at_step SslBump1
acl CONNECT method CONNECT
acl origin_port port ${originPort}
ssl_bump peek step1
ssl_bump bump all
http_access deny !origin_port
${shapes.join('\n')}
http_access deny all
request_header_access Authorization deny all
request_header_add Authorization "Bearer ${SECRET}" all
logformat audit {"time":"%tl","id":"%un","verdict":"%Ss","src":"%>a:%>p","method":"%rm","host":"%>rd","path":"%"rp","status":%>Hs,"bytes":%<st,"ms":%tr,"upstream":"%<a"}
access_log stdio:${dir}/log/access.log buffer-size=64KB logformat=audit
buffered_logs on
cache_log ${dir}/log/cache.log
cache deny all
cache_mem 0 MB
hosts_file ${dir}/hosts
dns_nameservers 127.0.0.1
pid_filename ${dir}/log/squid.pid
coredump_dir ${dir}/log
netdb_filename none
pinger_enable off
visible_hostname bench
via off
forwarded_for delete
client_idle_pconn_timeout 1 hour
server_idle_pconn_timeout 1 hour
shutdown_lifetime 0 seconds
`;
}

/** squid, started by root, works as the user `proxy`. */
function giveTo(user: string, ...paths: readonly string[]): void {
  const done = spawnSync('chown', ['-R', `${user}:`, ...paths], { encoding: 'utf8' });
  if (done.status !== 0) throw new Error(`Cannot give ${paths.join(' ')} to ${user}: ${done.stderr}`);
}

/** squid removes its segments when it ends well; one that was killed leaves them. */
function removeSharedMemory(service: string): void {
  if (!existsSync(SHARED_MEMORY)) return;
  for (const name of readdirSync(SHARED_MEMORY)) {
    if (name.startsWith(`${service}-`)) rmSync(join(SHARED_MEMORY, name), { force: true });
  }
}

function certgen(): string | null {
  return findFile('/usr/lib/squid/security_file_certgen', '/usr/lib64/squid/security_file_certgen');
}
