/** The job every target does: the same allowlist, the same secret, the same requests. Deterministic, so runs can be compared. */

/** One allowed host. All rules of a shape share methods and prefix; only the shape, not the host, is cheap to list in squid. */
export interface HostRule {
  readonly name: string;
  readonly host: string;
  readonly shape: Shape;
}

export interface Shape {
  readonly id: number;
  readonly methods: readonly string[];
  /** Ends with `/`; everything below it is allowed. */
  readonly prefix: string;
}

/** One request as it goes on the wire, prebuilt. */
export interface WireRequest {
  readonly host: string;
  readonly method: string;
  readonly path: string;
}

/** Hosts in the allowlist: about what a company-wide policy holds. */
export const RULE_COUNT = 3000;
/** Hosts that the load really goes to; connection `i` talks to number `i` modulo this. */
export const MEASURED_HOSTS = 16;
/** All hosts are below this name, so that one wildcard certificate serves them. */
export const DOMAIN = 'bench.example';
/** A host below {@link DOMAIN} that no rule names. */
export const UNLISTED_HOST = `unlisted.${DOMAIN}`;
/** What the origin must see. A made-up value. */
export const SECRET = 'bench-secret-4f1d9a6c2e7b';
/** What the client sends and the origin must not see. */
export const CLIENT_AUTHORIZATION = 'Bearer value-of-the-client';

/** Eight shapes: two method sets × four prefixes. */
export const SHAPES: readonly Shape[] = Array.from({ length: 8 }, (_, id) => ({
  id,
  methods: id % 2 === 0 ? ['GET', 'HEAD'] : ['GET', 'HEAD', 'POST'],
  prefix: `/v${1 + (id >> 1)}/`,
}));

/** The whole allowlist. */
export const RULES: readonly HostRule[] = Array.from({ length: RULE_COUNT }, (_, index) => ({
  name: `host-${String(index).padStart(4, '0')}`,
  host: `h${String(index).padStart(4, '0')}.${DOMAIN}`,
  shape: shapeOf(index),
}));

/** The rules that the load uses, spread over the whole list. */
export const MEASURED: readonly HostRule[] = Array.from({ length: MEASURED_HOSTS }, (_, index) =>
  ruleAt(Math.floor((index * RULE_COUNT) / MEASURED_HOSTS) + (index % SHAPES.length)),
);

/** 200 bytes of JSON: what the origin always answers. */
export const ORIGIN_BODY = originBody(200);

/** The allowed request of one connection. */
export function measuredRequest(connection: number): WireRequest {
  const rule = MEASURED[connection % MEASURED.length] ?? ruleAt(0);
  return { host: rule.host, method: 'GET', path: `${rule.shape.prefix}items/00042` };
}

/** Request bytes as a common SDK would send them. `port` is written into Host unless it is 443. */
export function requestBytes(request: WireRequest, port: number): Buffer {
  const authority = port === 443 ? request.host : `${request.host}:${port}`;
  const lines = [
    `${request.method} ${request.path} HTTP/1.1`,
    `Host: ${authority}`,
    'User-Agent: bench/1.0',
    'Accept: application/json',
    `Authorization: ${CLIENT_AUTHORIZATION}`,
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

function shapeOf(index: number): Shape {
  const shape = SHAPES[index % SHAPES.length];
  if (shape === undefined) throw new Error('Cannot build workload: no shape');
  return shape;
}

function ruleAt(index: number): HostRule {
  const rule = RULES[index];
  if (rule === undefined) throw new Error(`Cannot build workload: no rule ${index}`);
  return rule;
}

function originBody(sizeBytes: number): string {
  const start = '{"id":42,"object":"item","note":"';
  const end = '"}';
  return `${start}${'x'.repeat(sizeBytes - start.length - end.length)}${end}`;
}
