/** Recognises the parts of the policy format this version does not carry out, so that none is ignored or taken for a typo. */
import type { Finding, ProblemList, Span } from './problem.ts';
import type { DocumentPath } from './schema-problems.ts';
import type { Located } from './strict-tree.ts';

export interface NotYet {
  /** The document without those parts, so that the rest of it can be checked. */
  readonly value: unknown;
  /** Rules, credentials and tests (`rules/3`) that cannot be judged any further. */
  readonly skipped: ReadonlySet<string>;
  /** True for a container that lost a key or an item, whose emptiness is therefore no problem of its own. */
  readonly isTouched: (path: DocumentPath) => boolean;
}

interface Feature {
  /** Keys that are known and refused. */
  readonly keys?: readonly string[];
  /** Key → values that are known and refused, and what stands in for them while the rest is checked. */
  readonly values?: Readonly<Record<string, { readonly refused: readonly string[]; readonly standIn: string }>>;
}

const features: Readonly<Record<string, Feature>> = {
  document: {
    keys: ['extends', 'limits', 'budget', 'budgets', 'groups', 'dns'],
    values: { mode: { refused: ['observe'], standIn: 'enforce' } },
  },
  rule: {
    keys: ['ask', 'limits', 'graphql', 'rpc', 'grpc', 'budget', 'body', 'websocket', 'schedule'],
    values: {
      effect: { refused: ['ask'], standIn: 'deny' },
      protocol: { refused: ['tcp', 'udp'], standIn: 'http' },
      tls: { refused: ['passthrough'], standIn: 'intercept' },
    },
  },
  credential: { keys: ['limits', 'budget', 'refresh'] },
  inject: {
    keys: [
      'placeholder',
      'in',
      'query',
      'body',
      'path',
      'cookie',
      'sigv4',
      'oauth',
      'oauth2',
      'jwt',
      'github',
      'clientCertificate',
    ],
  },
  test: { values: { expect: { refused: ['ask'], standIn: 'deny' } } },
};

/** Adds a `NOT_YET` problem for each such part and returns the document without them. */
export function refuseNotYet(tree: Located, problems: ProblemList): NotYet {
  const touched = new Set<string>();
  const skipped = new Set<string>();
  const walk: Walk = { touched, skipped, problems };
  const value = visit(tree, [], null, walk);
  return { value, skipped, isTouched: (path) => touched.has(path.join('/')) };
}

interface Walk {
  readonly touched: Set<string>;
  readonly skipped: Set<string>;
  readonly problems: ProblemList;
}

/** `item` is the rule, credential or test around the place. */
function visit(node: Located, path: DocumentPath, item: string | null, walk: Walk): unknown {
  if (node.kind === 'scalar') return node.value;
  if (node.kind === 'list') return visitList(node, path, item, walk);
  const feature = features[placeOf(path)] ?? {};
  const value: Record<string, unknown> = {};
  for (const [key, entry] of node.entries) {
    const inner = [...path, key];
    if (feature.keys?.includes(key) === true) {
      refuse(entry.key, `\`${key}\``, key, path, item, walk);
      continue;
    }
    const choice = feature.values?.[key];
    const written = entry.node.value;
    if (choice !== undefined && typeof written === 'string' && choice.refused.includes(written)) {
      refuse(entry.node.span, `\`${key}: ${written}\``, written, path, item, walk);
      value[key] = choice.standIn;
      continue;
    }
    value[key] = visit(entry.node, inner, item, walk);
  }
  return value;
}

function visitList(node: Located, path: DocumentPath, item: string | null, walk: Walk): unknown[] {
  const values: unknown[] = [];
  for (const [index, element] of node.items.entries()) {
    if (path.at(-1) === 'hosts' && typeof element.value === 'string' && element.value.startsWith('@')) {
      refuse(element.span, 'a group of hosts (`@…`)', undefined, path, item, walk);
      continue;
    }
    const inner = [...path, index];
    values.push(visit(element, inner, path.length === 1 ? inner.join('/') : item, walk));
  }
  return values;
}

function refuse(
  span: Span,
  what: string,
  excerpt: string | undefined,
  path: DocumentPath,
  item: string | null,
  walk: Walk,
): void {
  const finding: Finding = {
    code: 'NOT_YET',
    span,
    message: `${what} is not supported by this version`,
    hint: 'Remove it; it is refused rather than ignored because the policy would mean something else without it.',
    excerpt,
  };
  walk.problems.add(finding);
  walk.touched.add(path.join('/'));
  if (item !== null) walk.skipped.add(item);
}

function placeOf(path: DocumentPath): string {
  if (path.length === 0) return 'document';
  const [list, index, key] = path;
  if (typeof index !== 'number') return '';
  if (path.length === 2)
    return list === 'rules' ? 'rule' : list === 'credentials' ? 'credential' : list === 'tests' ? 'test' : '';
  return path.length === 3 && list === 'credentials' && key === 'inject' ? 'inject' : '';
}
