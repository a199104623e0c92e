/** The published JSON Schema of a record. */
import type { AuditKind, AuditVerdict, RequestRecord } from './types.ts';

/** JSON Schema 2020-12 of one line. Readers must accept further fields: a record is only ever extended while `v` is 1. */
export function auditRecordSchema(): Readonly<Record<string, unknown>> {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Sallyport audit record',
    description:
      'One line of audit-*.jsonl: RFC 8785 canonical JSON with everything outside printable ASCII as \\uXXXX.',
    type: 'object',
    required: ['v', 'seq', 'id', 'time', 'node', 'kind', 'prev', 'hash'],
    properties: {
      v: { const: 1 },
      seq: { type: 'integer', minimum: 1, description: 'Counts every record of this writer without a hole.' },
      id: { ...text, description: 'ULID; a refused caller is told the same id.' },
      time: {
        type: 'string',
        pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}Z$',
        description: 'RFC 3339, microseconds, UTC.',
      },
      node: text,
      kind: { type: 'string', enum: kinds },
      prev: { ...sha256, description: 'hash of the record before; 64 zeros for the first.' },
      hash: { ...sha256, description: 'SHA-256 over the RFC 8785 form of the record without hash.' },
      sandbox: orNull(object({ id: text, labels: { type: 'object', additionalProperties: text } })),
      actor: text,
      policy: orNull(object({ name: text, digest: text, generation: count })),
      verdict: { type: 'string', enum: verdicts },
      rule: orNull(text),
      code: text,
      reason: text,
      conn: object({
        via: { type: 'string', enum: ['connect', 'absolute', 'transparent', 'socks', 'dns', 'ingress'] },
        src: { ...text, description: 'address:port, or unix.' },
        sni: orNull(text),
        alpn: orNull(text),
        tls: orNull(text),
      }),
      request: orNull(
        object({
          method: text,
          scheme: text,
          host: text,
          port: count,
          path: text,
          query: { ...orNull(text), description: 'Keys; values are redacted.' },
          bytes: amount,
        }),
      ),
      raw: { ...orNull(text), description: 'First bytes of a message that did not parse.' },
      upstream: orNull(object({ address: text, tls: orNull(text), certSha256: orNull(text), connectMs: amount })),
      response: orNull(object({ status: count, bytes: amount, firstByteMs: amount, durationMs: amount })),
      credential: orNull(object({ name: text, version: text, slots: { type: 'array', items: text } })),
      redactions: { ...amount, description: 'Echoed secret values replaced in the response.' },
      detail: { type: 'object', description: 'Further fields of the kind.' },
    },
    additionalProperties: true,
    allOf: [
      when(['http.request', 'tcp.connect', 'tls.handshake'], { required: requestFields }),
      when(['audit.checkpoint'], { required: ['detail'], properties: { detail: checkpointDetail } }),
      when(['audit.gap'], { required: ['reason', 'detail'], properties: { detail: gapDetail } }),
    ],
  };
}

const text = { type: 'string' };
const sha256 = { type: 'string', pattern: '^[0-9a-f]{64}$' };
const count = { type: 'integer', minimum: 0 };
/** A measured number that went wrong is null, so that the record is not lost. */
const amount = { type: ['number', 'null'] };

const kinds = [
  'http.request',
  'tcp.connect',
  'tls.handshake',
  'policy.load',
  'policy.reload',
  'vault.change',
  'sandbox.attach',
  'sandbox.detach',
  'admin.start',
  'admin.stop',
  'audit.checkpoint',
  'audit.gap',
  'selftest',
] satisfies AuditKind[];

const verdicts = ['allow', 'deny', 'ask', 'observe-deny', 'error'] satisfies AuditVerdict[];

const requestFields = [
  'sandbox',
  'policy',
  'verdict',
  'rule',
  'code',
  'reason',
  'conn',
  'request',
  'raw',
  'upstream',
  'response',
  'credential',
  'redactions',
] satisfies (keyof RequestRecord)[];

const checkpointDetail = object({
  fromSeq: count,
  toSeq: count,
  hash: sha256,
  closing: { type: 'boolean', description: 'The log was closed in order behind this record.' },
  keyId: text,
  signature: {
    ...text,
    description:
      'base64 Ed25519 over "sallyport audit checkpoint v1", a NUL byte and the RFC 8785 form of {closing,fromSeq,hash,node,toSeq}.',
  },
});

const gapDetail = {
  type: 'object',
  properties: {
    atMost: { type: ['integer', 'null'], description: 'Upper bound of lost records; null = unknown.' },
    dropped: { ...count, description: 'Exact count of lost records.' },
    lastSeq: count,
    rebooted: { type: 'boolean' },
    torn: {
      description: 'Bytes behind the last good record, and the file that keeps them.',
      type: 'array',
      items: object({ bytes: count, lines: count, sha256, file: text }),
    },
  },
};

function object(properties: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return { type: 'object', required: Object.keys(properties), properties };
}

function orNull(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return { anyOf: [schema, { type: 'null' }] };
}

function when(of: readonly string[], then: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return { if: { properties: { kind: { enum: of } } }, then };
}
