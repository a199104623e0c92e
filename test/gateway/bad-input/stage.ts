/** One gateway and its upstreams for a whole file of hostile inputs, and the checks that every such input must pass. */
import type { ExecutionContext, TestFn } from 'ava';
import type { AuditLine } from '../../kit/audit-reader.ts';
import { createAuthority, type TestAuthority } from '../../kit/certificates.ts';
import { type GatewaySetup, startTestGateway, type TestGateway } from '../../kit/gateway.ts';
import { header } from '../../kit/http-message.ts';
import { askTunnel, type RawConnection, type RawResponse, type TunnelTls } from '../../kit/raw-client.ts';
import { startUpstream, type Upstream, type UpstreamOptions } from '../../kit/upstream.ts';

/** Where bytes go: straight to the proxy, or into a tunnel (TLS inside unless `plain`). `{auth}` in them is the caller's credential line. */
export type Via =
  | { readonly kind: 'proxy' }
  | {
      readonly kind: 'tunnel';
      readonly authority: string;
      /** SNI; default the host of `authority`, null = none. */
      readonly servername?: string | null;
      readonly plain?: boolean;
    };

export interface RefusedCase {
  /** Starts with the row, e.g. `H7 two Host lines`. */
  readonly title: string;
  readonly via: Via;
  readonly send: string | Buffer;
  readonly status: number;
  readonly code: string;
  /** Rule in body and record. */
  readonly rule?: string;
  /** Text that `raw` of the record must hold (as the record shows it). */
  readonly raw?: string;
  /** Fields of the recorded request. */
  readonly request?: Partial<NonNullable<AuditLine['request']>>;
  /** The connection must be closed after the answer. */
  readonly closes?: boolean;
}

export interface AllowedCase {
  readonly title: string;
  readonly via: Via;
  readonly send: string | Buffer;
  /** Name of the upstream that must see it. */
  readonly upstream: string;
  /** The request line it must see, byte for byte. */
  readonly line: string;
  /** Headers it must see; null = must not see. */
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly rule?: string;
}

export interface StageOptions extends Omit<GatewaySetup, 'upstreams'> {
  /** TLS upstreams by name. */
  readonly tls?: Readonly<Record<string, UpstreamOptions>>;
  /** Plaintext upstreams by name. */
  readonly plain?: Readonly<Record<string, UpstreamOptions>>;
}

/** Authorises the caller in bytes that go to the proxy itself. */
export const auth = '{auth}';

/** A request without body: lines joined, empty line added. */
export function request(...lines: readonly string[]): string {
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** Bytes for the proxy itself, with the caller's credential as last header line. */
export function proxyRequest(...lines: readonly string[]): string {
  return `${lines.join('\r\n')}\r\n${auth}\r\n`;
}

export const proxy: Via = { kind: 'proxy' };

export function tunnel(authority: string, options: { servername?: string | null; plain?: boolean } = {}): Via {
  return { kind: 'tunnel', authority, ...options };
}

export class Stage {
  readonly gateway: TestGateway;
  readonly authority: TestAuthority;
  readonly upstreams: ReadonlyMap<string, Upstream>;

  constructor(gateway: TestGateway, authority: TestAuthority, upstreams: ReadonlyMap<string, Upstream>) {
    this.gateway = gateway;
    this.authority = authority;
    this.upstreams = upstreams;
  }

  upstream(name: string): Upstream {
    const found = this.upstreams.get(name);
    if (found === undefined) throw new Error(`no upstream ${name} on this stage`);
    return found;
  }

  clear(): void {
    for (const upstream of this.upstreams.values()) upstream.clear();
  }

  /** Application bytes that any upstream got since `clear`. */
  get receivedBytes(): number {
    return [...this.upstreams.values()].reduce((sum, upstream) => sum + upstream.receivedBytes, 0);
  }

  expand(bytes: string | Buffer): string | Buffer {
    return typeof bytes === 'string' ? bytes.replaceAll(auth, this.gateway.authorization) : bytes;
  }

  /** A connection ready for the bytes of a case. */
  async open(t: ExecutionContext, via: Via): Promise<RawConnection> {
    const connection = await this.gateway.connect();
    t.teardown(() => connection.close());
    if (via.kind === 'proxy') return connection;
    const answer = await askTunnel(connection, via.authority, this.gateway.authorization);
    if (answer.status !== 200) throw new Error(`CONNECT ${via.authority}: ${answer.status} ${answer.body.toString()}`);
    if (via.plain === true) return connection;
    const host = via.authority.slice(0, via.authority.lastIndexOf(':'));
    const inner = await connection.startTls(this.clientTls(via.servername === undefined ? host : via.servername));
    t.teardown(() => inner.close());
    return inner;
  }

  clientTls(servername: string | null): TunnelTls {
    return { servername, ca: this.gateway.ca };
  }

  async close(): Promise<void> {
    await this.gateway.close();
    for (const upstream of this.upstreams.values()) await upstream.close();
  }
}

/** Starts upstreams and gateway. */
export async function startStage(options: StageOptions): Promise<Stage> {
  const authority = createAuthority();
  const upstreams = new Map<string, Upstream>();
  for (const [name, upstreamOptions] of Object.entries(options.tls ?? {})) {
    const leaf = authority.issue({ names: [name] });
    const tls = { cert: leaf.certPem, key: leaf.keyPem, ...upstreamOptions.tls };
    upstreams.set(name, await startUpstream({ ...upstreamOptions, tls }));
  }
  for (const [name, upstreamOptions] of Object.entries(options.plain ?? {})) {
    upstreams.set(name, await startUpstream(upstreamOptions));
  }
  const pins = [...upstreams].map(([name, { port }]) => ({ name, port, ca: authority.certPem }));
  try {
    return new Stage(await startTestGateway({ ...options, upstreams: pins }), authority, upstreams);
  } catch (error) {
    for (const upstream of upstreams.values()) await upstream.close();
    throw error;
  }
}

/** Declares a stage for the file: started before its tests, closed after them. Tests must be serial, since they share counters. */
export function useStage(test: TestFn, options: () => StageOptions | Promise<StageOptions>): () => Stage {
  let stage: Stage | undefined;
  test.before(async () => {
    stage = await startStage(await options());
  });
  test.after.always(() => stage?.close());
  return () => {
    if (stage === undefined) throw new Error('the stage has not started');
    return stage;
  };
}

/** One serial test a case: refused with status and code, nothing reached an upstream, and the record says so. */
export function testRefused(test: TestFn, stage: () => Stage, cases: readonly RefusedCase[]): void {
  for (const one of cases) {
    test.serial(`${one.title} is refused with ${one.status} ${one.code}`, async (t) => {
      const here = stage();
      here.clear();
      const connection = await here.open(t, one.via);
      const answer = await connection.ask(here.expand(one.send));
      await expectRefused(t, here, answer, one);
      if (one.closes === true) t.is((await connection.readToClose()).length, 0);
    });
  }
}

/** Checks a refusal: body, headers, untouched upstreams, record. Returns the record. */
export async function expectRefused(
  t: ExecutionContext,
  stage: Stage,
  answer: RawResponse,
  expected: Pick<RefusedCase, 'status' | 'code' | 'rule' | 'raw' | 'request'>,
): Promise<AuditLine> {
  const text = answer.body.toString();
  t.is(answer.status, expected.status, text);
  const { error } = JSON.parse(text) as { error: Record<'code' | 'reason' | 'hint' | 'requestId' | 'rule', string> };
  t.true(error.reason.length > 0 && error.hint.length > 0, text);
  t.is(error.code, expected.code, text);
  if (expected.rule !== undefined) t.is(error.rule, expected.rule);
  t.is(header(answer.headers, 'x-sallyport-request-id'), error.requestId);
  t.is(stage.receivedBytes, 0);
  const record = await stage.gateway.audit.find((line) => line.id === error.requestId);
  t.is(record.code, expected.code);
  t.true(record.verdict === 'deny' || record.verdict === 'error');
  t.is(record.upstream ?? null, null);
  if (expected.rule !== undefined) t.is(record.rule, expected.rule);
  if (expected.raw !== undefined) t.true(record.raw?.includes(expected.raw), record.text);
  if (expected.request !== undefined) t.like(record.request, expected.request);
  return record;
}

/** One serial test a case: forwarded exactly as `line`, answered 200, recorded as allowed. */
export function testAllowed(test: TestFn, stage: () => Stage, cases: readonly AllowedCase[]): void {
  for (const one of cases) {
    test.serial(`${one.title} reaches the upstream as ${one.line}`, async (t) => {
      const here = stage();
      here.clear();
      const mark = await here.gateway.audit.mark();
      const connection = await here.open(t, one.via);
      const answer = await connection.ask(here.expand(one.send));
      t.is(answer.status, 200, answer.body.toString());
      const seen = here.upstream(one.upstream).requests;
      t.is(seen.length, 1);
      t.is(seen[0]?.rawHead.split('\r\n')[0], one.line);
      for (const [name, value] of Object.entries(one.headers ?? {})) {
        t.is(header(seen[0]?.headers ?? [], name) ?? null, value, name);
      }
      const record = await here.gateway.audit.find(
        (line) => line.kind === 'http.request' && line.sandbox?.id === here.gateway.caller.id,
        mark,
      );
      t.is(record.verdict, 'allow', record.text);
      t.is(record.request?.path, (one.line.split(' ')[1] ?? '').split('?')[0]);
      if (one.rule !== undefined) t.is(record.rule, one.rule);
    });
  }
}
