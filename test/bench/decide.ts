/** ns per policy decision at 10, 1,000 and 10,000 rules, beside the same questions under 10 rules. */
import { type CompiledPolicy, canonicalRequest, compile, decide, type HttpFacts } from '../../policy/index.ts';
import { policyDocument, rule } from '../policy/documents.ts';

/** One kind of question. */
interface Scenario {
  readonly name: string;
  readonly verdict: 'allow' | 'deny';
  readonly requests: (rules: number) => readonly string[];
}

export interface DecideBenchRow {
  readonly scenario: string;
  readonly rules: number;
  readonly nsPerDecision: number;
  /** Beside the same scenario under 10 rules. */
  readonly ratio: number;
}

const SIZES = [10, 1_000, 10_000] as const;

/** A burst fits into one time slice and the best of many counts: other work on the machine only ever adds time. */
const BURSTS = 80;
const DECISIONS_PER_BURST = 4_000;

/** The entry of `npm run bench -- decide`. */
export async function bench(options: { readonly json: boolean }): Promise<unknown> {
  const rows = await runDecideBench();
  console.log(options.json ? JSON.stringify(rows) : rows.map(textOf).join('\n'));
  return rows;
}

/** Measures every scenario at every size. Yields to the event loop between scenarios only. */
export async function runDecideBench(): Promise<readonly DecideBenchRow[]> {
  const policies = new Map(SIZES.map((size) => [size, policyOf(size)]));
  const rows: DecideBenchRow[] = [];
  for (const scenario of scenarios) {
    let base = 0;
    for (const [size, policy] of policies) {
      const ns = measure(policy, scenario, size);
      base = size === SIZES[0] ? ns : base;
      rows.push({ scenario: scenario.name, rules: size, nsPerDecision: round(ns), ratio: round(ns / base) });
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  return rows;
}

const scenarios: readonly Scenario[] = [
  {
    name: 'exact host, one path rule',
    verdict: 'allow',
    requests: (rules) => spread(rules, 5, (n) => `GET https://h${n}.svc.example.com/repos/acme/site/contents`),
  },
  {
    name: 'exact host, credential injected',
    verdict: 'allow',
    requests: () => ['GET https://api.bound.example/repos/acme/site'],
  },
  {
    name: 'wildcard host',
    verdict: 'allow',
    requests: (rules) => spread(rules, 3, (n) => `POST https://a.b.w${n}.example.org/v1/items?x=1`),
  },
  {
    name: 'denied by a ** rule',
    verdict: 'deny',
    requests: (rules) => spread(rules, 2, (n) => `GET https://h0.svc.example.com/secret${n}/x`),
  },
  {
    name: 'no rule for the host',
    verdict: 'deny',
    requests: () => ['GET https://nowhere.example.net/', 'GET https://evil.test/repos/acme/x'],
  },
];

/** Half exact hosts with paths, 3/10 wildcards, 2/10 deny rules for ** with paths; one more host has a credential. */
function policyOf(size: number): CompiledPolicy {
  const tenths = size / 10;
  return compile(
    policyDocument({
      rules: [
        ...numbered(tenths * 5, (n) =>
          rule({
            name: `exact-${n}`,
            hosts: [`h${n}.svc.example.com`],
            methods: ['GET'],
            paths: ['/repos/acme/**', '/user'],
          }),
        ),
        ...numbered(tenths * 3 - 1, (n) => rule({ name: `wild-${n}`, hosts: [`*.w${n}.example.org`] })),
        rule({ name: 'bound', hosts: ['api.bound.example'], methods: ['GET'], paths: ['/repos/acme/**'] }),
        ...numbered(tenths * 2, (n) =>
          rule({ name: `deny-${n}`, effect: 'deny', hosts: ['**'], paths: [`/secret${n}/**`, `/**/hidden${n}`] }),
        ),
      ],
      credentials: [
        {
          name: 'token',
          secret: 'vault:token',
          bind: { hosts: ['api.bound.example'], methods: ['GET'], paths: ['/repos/acme/**'], ports: [] },
          inject: { kind: 'header', header: 'authorization', format: 'Bearer {secret}' },
          allowCleartext: false,
          onClientCredential: 'deny',
          line: 1,
        },
      ],
    }),
  );
}

function measure(policy: CompiledPolicy, scenario: Scenario, size: number): number {
  const facts = scenario.requests(size).map(factsOf);
  let best = Number.POSITIVE_INFINITY;
  for (let burst = 0; burst < BURSTS; burst += 1) {
    const start = process.hrtime.bigint();
    const hits = decideAll(policy, facts, scenario.verdict);
    const ns = Number(process.hrtime.bigint() - start) / DECISIONS_PER_BURST;
    if (hits !== DECISIONS_PER_BURST) {
      throw new Error(
        `Cannot measure ${scenario.name}: ${DECISIONS_PER_BURST - hits} decisions are not ${scenario.verdict}`,
      );
    }
    best = Math.min(best, ns);
  }
  return best;
}

function decideAll(policy: CompiledPolicy, facts: readonly HttpFacts[], verdict: string): number {
  let hits = 0;
  for (let done = 0, index = 0; done < DECISIONS_PER_BURST; done += 1, index += 1) {
    if (index === facts.length) index = 0;
    const one = facts[index];
    if (one !== undefined && decide(policy, one).verdict === verdict) hits += 1;
  }
  return hits;
}

function factsOf(text: string): HttpFacts {
  const [method = '', url = ''] = text.split(' ');
  const facts = canonicalRequest(method, url);
  if (!facts.ok) {
    throw new Error(`Cannot measure ${text}: ${facts.reason}`);
  }
  return facts.value;
}

/** Up to 64 requests over the rules of one kind, so that caches of the machine see more than one host. */
function spread(rules: number, tenths: number, request: (n: number) => string): readonly string[] {
  const count = (rules / 10) * tenths - (tenths === 3 ? 1 : 0);
  const step = Math.max(1, Math.floor(count / 64));
  return numbered(Math.min(count, 64), (n) => request(n * step));
}

function numbered<T>(count: number, make: (n: number) => T): T[] {
  return Array.from({ length: count }, (_, n) => make(n));
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function textOf(row: DecideBenchRow): string {
  const ns = row.nsPerDecision.toFixed(0).padStart(6);
  return `${row.scenario.padEnd(34)} ${String(row.rules).padStart(6)} rules ${ns} ns  × ${row.ratio.toFixed(2)}`;
}
