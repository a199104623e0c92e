import { Ajv2020 } from 'ajv/dist/2020.js';
import test from 'ava';
import { parse } from 'yaml';
import { policySchema } from '../../../policy/index.ts';
import { filesBelow, repositoryText } from '../../kit/source-tree.ts';

interface Node {
  readonly type?: string;
  readonly description?: string;
  readonly additionalProperties?: unknown;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly items?: Node;
  readonly examples?: readonly unknown[];
}

function nodes(node: Node, path: string): readonly (readonly [string, Node])[] {
  const below = Object.entries(node.properties ?? {}).flatMap(([key, inner]) => nodes(inner, `${path}.${key}`));
  return [[path, node], ...below, ...(node.items === undefined ? [] : nodes(node.items, `${path}[]`))];
}

const all = nodes(policySchema(), '');

test('policySchema() is a strict draft 2020-12 schema that takes every policy of the corpus', (t) => {
  const validate = new Ajv2020({ strict: true, allErrors: true }).compile(policySchema());
  for (const file of filesBelow('test/testdata/policy', '.yaml')) {
    t.true(validate(parse(parse(repositoryText(file)).policy)), `${file}: ${JSON.stringify(validate.errors)}`);
  }
});

test('policySchema() closes every mapping but query, and describes every key', (t) => {
  for (const [path, node] of all) {
    if (node.type === 'object' && !path.endsWith('.query')) t.is(node.additionalProperties, false, path);
    if (!path.endsWith('[]')) t.is(typeof node.description, 'string', path);
  }
});

test('policySchema() gives examples that satisfy it', (t) => {
  for (const [path, node] of all) {
    if (node.examples === undefined) continue;
    const validate = new Ajv2020({ strict: true }).compile(structuredClone(node));
    for (const example of node.examples) t.true(validate(example), `${path}: ${JSON.stringify(example)}`);
  }
});

test('policySchema() gives a copy each time', (t) => {
  const first: { additionalProperties?: boolean } = policySchema();
  first.additionalProperties = true;
  t.like(policySchema(), { additionalProperties: false });
});
