/** Looks a name up once for one connection; every answer is judged before anything is dialled. */
import { promises as dns, Resolver } from 'node:dns';
import { promisify } from 'node:util';

/** @returns addresses in the order they should be tried; empty = the name has none. Rejects when the lookup itself failed. */
export type Resolve = (name: string) => Promise<readonly string[]>;

/** Answers kept of one lookup: enough for any real name, and a bound on what an answer can make us try. */
const MAX_ANSWERS = 16;

/** Attempts and time of one query with own resolvers; the connection deadline is above both. */
const QUERY_TRIES = 2;
const QUERY_TIMEOUT_MS = 3_000;

/** The system's way (hosts file included), or the given resolver addresses. IPv4 answers come first. */
export function createResolver(servers: readonly string[]): Resolve {
  if (servers.length === 0) return resolveBySystem;
  const resolver = new Resolver({ timeout: QUERY_TIMEOUT_MS, tries: QUERY_TRIES });
  resolver.setServers([...servers]);
  const resolve4 = promisify(resolver.resolve4.bind(resolver));
  const resolve6 = promisify(resolver.resolve6.bind(resolver));
  return async (name) => {
    const [four, six] = await Promise.allSettled([resolve4(name), resolve6(name)]);
    if (four.status === 'rejected' && six.status === 'rejected') throw four.reason;
    return [four, six].flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : [])).slice(0, MAX_ANSWERS);
  };
}

async function resolveBySystem(name: string): Promise<readonly string[]> {
  // The trailing dot keeps search domains of resolv.conf out: the name judged is the name asked.
  const answers = await dns.lookup(`${name}.`, { all: true, order: 'ipv4first' });
  return answers.slice(0, MAX_ANSWERS).map((answer) => answer.address);
}
