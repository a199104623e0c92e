/** A gateway in front of local servers, and the environment an unchanged client needs to use it. */
import type { ExecutionContext } from 'ava';
import { createAuthority, type TestCertificate } from '../../kit/certificates.ts';
import { type AuditLine, startTestGateway, type TestGateway } from '../../kit/gateway.ts';
import { type CommandResult, plainEnvironment } from '../../kit/run-command.ts';
import { scratchDirectory } from '../../kit/scratch.ts';
import type { LocalServer } from './https-server.ts';

export interface RigOptions {
  readonly policy: string;
  /** One server for each name; `plain` names are reached over http. */
  readonly servers: Readonly<Record<string, (certificate: TestCertificate) => Promise<LocalServer>>>;
}

export interface Rig {
  readonly gateway: TestGateway;
  /** Started servers by name. */
  readonly servers: Readonly<Record<string, LocalServer>>;
  /** A directory of the test. */
  readonly home: string;
  /** PATH, HOME, and what the gateway gives a sandbox; nothing else. */
  readonly env: Readonly<Record<string, string>>;
  /** Stops the gateway, so that the log is complete, and gives `verdict METHOD host path` of every recorded request. */
  recorded(): Promise<string[]>;
}

/** Starts servers and gateway; all of it ends with the test. */
export async function startRig(t: ExecutionContext, options: RigOptions, home?: string): Promise<Rig> {
  const authority = createAuthority();
  const servers: Record<string, LocalServer> = {};
  for (const [name, start] of Object.entries(options.servers)) {
    const server = await start(authority.issue({ names: [name] }));
    servers[name] = server;
    t.teardown(() => server.close());
  }
  const upstreams = Object.entries(servers).map(([name, { port }]) => ({ name, port, ca: authority.certPem }));
  const gateway = await startTestGateway({ policy: options.policy, upstreams });
  t.teardown(() => gateway.close());
  const directory = home ?? (await scratch(t));
  return {
    gateway,
    servers,
    home: directory,
    env: { ...plainEnvironment(directory), ...gateway.environment },
    recorded: async () => {
      await gateway.gateway.close();
      return (await gateway.audit.all()).filter(isOurs(gateway.caller.id)).map(summary);
    },
  };
}

/** A temporary directory that ends with the test. */
export async function scratch(t: ExecutionContext): Promise<string> {
  const directory = await scratchDirectory();
  t.teardown(() => directory.remove());
  return directory.path;
}

/** Fails with everything the program said when it did not end with 0. */
export function succeeded(t: ExecutionContext, result: CommandResult): void {
  if (result.code !== 0) t.log(result.stdout, result.stderr);
  t.is(result.code, 0);
}

/** The gateway's self-test asks, too; its records are not ours. */
function isOurs(id: string): (line: AuditLine) => boolean {
  return (line) => line.kind === 'http.request' && line.sandbox?.id === id;
}

function summary(line: AuditLine): string {
  const { request } = line;
  if (request === null || request === undefined) return `${line.verdict} ${line.code}`;
  return `${line.verdict} ${request.method} ${request.host} ${request.path}`;
}
