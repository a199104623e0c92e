/** Every key of the configuration file: what this version takes, and what it knows and refuses. */

import { canonicalHost, isNeverName } from '../../policy/index.ts';
import { integer, type JsonSchema, list, object, oneOf, record, type Shape, text, unsupported } from './shape.ts';
import {
  callerId,
  duration,
  keyFile,
  labelKey,
  labelValue,
  listenAddress,
  parentProxy,
  passphrase,
  path,
  policyName,
  resolverAddress,
  size,
  tokenReference,
  upstreamAddress,
} from './values.ts';

// Bounds of lists: far above any real file, far below what would cost time to check.
const MAX_LISTENERS = 16;
const MAX_UPSTREAMS = 1000;
const MAX_CALLERS = 1000;
const MAX_LABELS = 32;
const MAX_RESOLVERS = 8;

const second = 1000;
const hour = 3_600 * second;
const mebibyte = 1024 ** 2;

/** Exactly the form in which the policy judges names, so a pin cannot miss by spelling; never-list names stay shut. */
const upstreamName = text('a host name in lower-case A-labels, without a final dot', (value) => {
  const host = canonicalHost(value);
  const isCanonical = host.ok && host.value.kind === 'name' && host.value.name === value;
  return isCanonical && !isNeverName(value) ? value : undefined;
});

const upstream = object(
  { name: upstreamName, address: upstreamAddress, port: integer(1, 65_535), ca: path },
  { required: ['name', 'address'], description: 'A destination whose address the operator pins.' },
);

const caller = object(
  {
    id: callerId,
    policy: policyName,
    token: tokenReference,
    socket: path,
    labels: record(labelKey, labelValue, MAX_LABELS),
  },
  { required: ['id'], description: 'A caller known from the start, by a proxy password or a Unix socket of its own.' },
);

export const configShape = object({
  proxy: object({ listen: list(listenAddress, MAX_LISTENERS), socks: unsupported('the SOCKS proxy') }),
  api: object({ listen: listenAddress, socket: path, tls: unsupported('TLS on the API listener') }),
  ingress: unsupported('ingress'),
  policies: object({ dir: path, default: policyName }),
  vault: object({ file: path, key: keyFile, passphrase, kms: unsupported('a KMS key') }),
  audit: object({
    dir: path,
    fsync: oneOf(['always', 'interval', 'never']),
    checkpointEvery: duration(second, 24 * hour),
    rotateAt: size(mebibyte, 16 * 1024 * mebibyte),
    maxQueued: integer(64, 1_000_000),
    sinks: unsupported('a further audit sink'),
  }),
  upstreams: list(upstream, MAX_UPSTREAMS),
  egress: object({ parentProxy, extraCa: path, resolver: list(resolverAddress, MAX_RESOLVERS) }),
  callers: list(caller, MAX_CALLERS),
  node: unsupported('a node on this host'),
  cluster: unsupported('a cluster'),
  telemetry: object({ metrics: onlyTrue(), otlp: unsupported('OTLP export') }),
});

/** The document as the shape gives it: values checked one by one, nothing resolved. */
export type ConfigDocument = typeof configShape extends Shape<infer T> ? T : never;

/** The JSON Schema (2020-12) of the configuration file, for editors. The loader checks more: conflicts and duplicates. */
export function configSchema(): JsonSchema {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Sallyport configuration',
    ...configShape.schema,
  };
}

/** Metrics are always served; only the words that say so are taken. */
function onlyTrue(): Shape<true> {
  return {
    schema: { const: true },
    read(value, path, report) {
      if (value === true) return true;
      const message = 'metrics are always on in this version: expected true';
      report(path, { code: typeof value === 'boolean' ? 'CONFIG_UNSUPPORTED' : 'CONFIG_TYPE', message });
      return undefined;
    },
  };
}
