/** `npm run bench -- NAME`: runs one benchmark. Exit 0 = measured, 2 = could not run. */
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';

/** Each is a file beside this one that exports `bench(options)`. */
const BENCHES: Readonly<Record<string, string>> = {
  egress: 'keep-alive intercepted GETs beside nginx + Lua, squid and mitmproxy',
  decide: 'time of one policy decision at 10, 1,000 and 10,000 rules',
  audit: 'records a second through the audit log',
};

const USAGE = `Usage: npm run bench -- NAME [options]

${Object.entries(BENCHES)
  .map(([name, what]) => `  ${name.padEnd(8)} ${what}`)
  .join('\n')}
  list     these names

  --json               one JSON object on stdout
For egress:
  --install            fetch missing peers from Debian's archive (root)
  --connections N,N    keep-alive connections, default 16; try 1,16,64
  --rounds N           default 12
  --seconds S          length of a burst, default 1
  --node PATH          Node binary for the gateway
  --targets A,B        only these`;

const OPTIONS = {
  json: { type: 'boolean', default: false },
  install: { type: 'boolean', default: false },
  rounds: { type: 'string' },
  seconds: { type: 'string' },
  connections: { type: 'string' },
  node: { type: 'string' },
  targets: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** What a benchmark file exports. */
interface Bench {
  bench(options: Readonly<Record<string, unknown>> & { readonly json: boolean }): Promise<unknown>;
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 2;
}

async function main(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  const [name, ...rest] = positionals;
  if (values.help || name === undefined) return console.log(USAGE);
  if (name === 'list') return console.log(Object.keys(BENCHES).join('\n'));
  if (!(name in BENCHES)) {
    throw new Error(`Cannot run bench ${name}: there is no such bench; there are ${Object.keys(BENCHES).join(', ')}`);
  }
  if (rest.length > 0) throw new Error(`Cannot run bench ${name}: unexpected ${rest.join(' ')}`);
  const { bench } = await load(name);
  const result = await bench({
    json: values.json,
    install: values.install,
    ...optional('rounds', values.rounds, (text) => numberIn(text, 1, 1000, true)),
    ...optional('seconds', values.seconds, (text) => numberIn(text, 0.1, 60, false)),
    ...optional('connections', values.connections, (text) => text.split(',').map((one) => numberIn(one, 1, 512, true))),
    ...optional('nodePath', values.node, (text) => text),
    ...optional('targets', values.targets, (text) => text.split(',')),
  });
  if (values.json) console.log(JSON.stringify(result));
}

async function load(name: string): Promise<Bench> {
  const file = new URL(`./${name}.js`, import.meta.url);
  if (!existsSync(file)) throw new Error(`Cannot run bench ${name}: it is not built; run: npm run build`);
  // Cast: the names are ours and each of these files exports bench(); see BENCHES.
  return (await import(file.href)) as Bench;
}

function optional<T>(key: string, text: string | undefined, parse: (text: string) => T): Record<string, T> {
  return text === undefined ? {} : { [key]: parse(text) };
}

function numberIn(text: string, low: number, high: number, isWhole: boolean): number {
  const value = Number(text);
  if (text.trim() !== '' && value >= low && value <= high && (!isWhole || Number.isInteger(value))) return value;
  throw new Error(
    `Cannot run bench: ${JSON.stringify(text)} is not a ${isWhole ? 'whole ' : ''}number from ${low} to ${high}`,
  );
}
