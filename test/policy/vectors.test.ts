/** The published vectors against the implementation. */
import { readFileSync } from 'node:fs';
import test from 'ava';
import {
  type Canonical,
  canonicalAuthority,
  canonicalHost,
  canonicalTarget,
  classifyAddress,
  type Destination,
  decide,
  formatHostPattern,
  isNeverName,
  isPrivateCidr,
  matchesHost,
  matchPath,
  parseCidr,
  parseHostPattern,
  parsePathPattern,
} from '../../policy/index.ts';
import { policyOf, rule } from './documents.ts';

interface Vector {
  readonly id: string;
  readonly row: string;
  readonly kind: string;
  readonly input: string;
  readonly ok: boolean;
  readonly value?: unknown;
  readonly code?: string;
  readonly defaultPort?: number | null;
  readonly pattern?: string | Readonly<Record<string, string>>;
}

// The file is ours and its shape is checked by the tests that use every field of every row.
const vectors: readonly Vector[] = JSON.parse(
  readFileSync(new URL('../../../test/testdata/vectors.json', import.meta.url), 'utf8'),
);

test('vectors.json has at least 150 rows with ids of their own', (t) => {
  t.true(vectors.length >= 150);
  t.is(new Set(vectors.map(({ id }) => id)).size, vectors.length);
});

for (const row of new Set(vectors.map((vector) => vector.row))) {
  test(`policy answers row ${row} of the vectors`, (t) => {
    for (const vector of vectors.filter((one) => one.row === row)) {
      t.deepEqual(answer(vector), wanted(vector), `${vector.id} ${vector.kind} ${JSON.stringify(vector.input)}`);
    }
  });
}

function wanted({ ok, value, code }: Vector): unknown {
  return value ?? code ?? ok;
}

function answer(vector: Vector): unknown {
  const { input } = vector;
  const pattern = typeof vector.pattern === 'string' ? vector.pattern : '';
  switch (vector.kind) {
    case 'host':
      return shown(canonicalHost(input), flat);
    case 'authority':
      return shown(canonicalAuthority(input, vector.defaultPort ?? null), ({ destination, port, explicitPort }) => ({
        ...flat(destination),
        port,
        explicitPort,
      }));
    case 'target':
      return shown(canonicalTarget(input), (target) => target);
    case 'address':
      return classifyAddress(input);
    case 'host-pattern':
      return shown(parseHostPattern(input), formatHostPattern);
    case 'never-name':
      return isNeverName(nameOf(must(canonicalHost(input))));
    case 'private-block':
      return isPrivateBlock(input);
    case 'host-match':
      return matchesHost(must(parseHostPattern(pattern)), must(canonicalHost(input)));
    case 'path-pattern':
      return shown(parsePathPattern(input), ({ text }) => text);
    case 'path-match':
      return matchPath(must(parsePathPattern(pattern)), input);
    case 'query-match':
      return allowsQuery(vector.pattern, input);
    default:
      throw new Error(`Cannot answer ${vector.id}: kind ${vector.kind} is unknown`);
  }
}

function allowsQuery(query: Vector['pattern'], sent: string): boolean {
  const policy = policyOf([rule({ name: 'q', hosts: ['a.com'], query: typeof query === 'object' ? query : {} })]);
  const target = must(canonicalTarget(`/?${sent}`));
  const destination: Destination = { kind: 'name', name: 'a.com' };
  return decide(policy, { scheme: 'https', destination, port: 443, method: 'GET', target }).verdict === 'allow';
}

function nameOf(destination: Destination): string {
  return destination.kind === 'name' ? destination.name : '';
}

function isPrivateBlock(text: string): boolean {
  const cidr = parseCidr(text);
  return cidr.ok && isPrivateCidr(cidr.value);
}

function flat(destination: Destination): object {
  return destination.kind === 'name' ? { name: destination.name } : { address: destination.address };
}

function shown<T>(result: Canonical<T>, show: (value: T) => unknown): unknown {
  return result.ok ? show(result.value) : result.code;
}

function must<T>(result: Canonical<T>): T {
  if (!result.ok) {
    throw new Error(`Cannot use the vector: ${result.reason}`);
  }
  return result.value;
}
