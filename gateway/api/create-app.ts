/** The bare HTTP application: limits, request ids and one shape of error; routes come as plugins. */
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { PolicyError } from '../../policy/errors.ts';
import { VaultError } from '../../vault/errors.ts';
import { GatewayError, type GatewayErrorCode } from '../errors.ts';

/** The one shape of an error on our own API. */
export interface ErrorBody {
  readonly error: { readonly code: string; readonly message: string; readonly requestId: string };
}

/** JSON Schema of {@link ErrorBody}, for the response schemas of routes. */
export const errorSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message', 'requestId'],
      properties: { code: { type: 'string' }, message: { type: 'string' }, requestId: { type: 'string' } },
    },
  },
} as const;

/** An application without routes. Bodies are checked as they are: nothing is coerced, filled in or silently dropped. */
export function createApp(): FastifyInstance {
  const app = Fastify({
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: true,
    genReqId: () => randomUUID(),
    http: { maxHeaderSize: MAX_HEADER_BYTES },
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } },
    frameworkErrors: (error, request, reply) => {
      answerError(error, request, reply);
    },
    clientErrorHandler,
  });
  app.server.maxConnections = MAX_CONNECTIONS;
  app.setErrorHandler<FastifyError>(answerError);
  app.setNotFoundHandler((request, reply) => {
    reply.code(404).send(errorBody('not_found', 'There is nothing at this path', request.id));
  });
  app.addHook('onSend', async (request, reply) => {
    reply.header('x-sallyport-request-id', request.id).header('cache-control', 'no-store');
  });
  return app;
}

export function errorBody(code: string, message: string, requestId: string): ErrorBody {
  return { error: { code, message, requestId } };
}

// The largest body is a sandbox's labels: 32 of at most 320 bytes.
const MAX_BODY_BYTES = 64 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;
// Sandbox ids are shorter; a longer one is nobody's.
const MAX_PARAM_LENGTH = 128;
// An operator, a scraper and a few health checks; beyond that the control plane would cost the data plane its descriptors.
const MAX_CONNECTIONS = 64;
// A request must have arrived by then; answering may take longer (reload, self-test).
const REQUEST_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 5_000;

function answerError(error: FastifyError | Error, request: FastifyRequest, reply: FastifyReply): void {
  const { status, code, message } = describe(error);
  // Errors before routing never come to the onSend hook.
  reply.header('x-sallyport-request-id', request.id);
  reply.code(status).send(errorBody(code, message, request.id));
}

interface Described {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

function describe(error: FastifyError | Error): Described {
  if (error instanceof GatewayError) return ours(statusOf[error.code] ?? 500, error);
  if (error instanceof VaultError || error instanceof PolicyError) return ours(500, error);
  const { statusCode, validation } = error as Partial<FastifyError>;
  // A schema's message names the place and the rule, not the value.
  if (validation !== undefined) return { status: 400, code: 'request_invalid', message: error.message };
  const known = statusCode === undefined ? undefined : frameworkCodes[statusCode];
  if (known !== undefined && statusCode !== undefined) return { status: statusCode, ...known };
  // Anything else may carry what it was working on: told to nobody.
  return { status: 500, code: 'internal', message: 'The gateway failed to answer; its own log says why' };
}

/** Messages of our own errors hold no secret and no header value (the rule of every errors.ts). */
function ours(status: number, error: GatewayError | VaultError | PolicyError): Described {
  return { status, code: error.code, message: error.message };
}

const statusOf: Partial<Record<GatewayErrorCode, number>> = {
  GATEWAY_POLICY_MISSING: 404,
  GATEWAY_POLICY_INVALID: 422,
  GATEWAY_CALLER_INVALID: 422,
  GATEWAY_AUDIT_FULL: 503,
  GATEWAY_AUDIT_FAILED: 503,
};

const frameworkCodes: Readonly<Record<number, { code: string; message: string }>> = {
  400: { code: 'request_malformed', message: 'The request is malformed' },
  405: { code: 'method_not_allowed', message: 'This method is not taken here' },
  408: { code: 'request_timeout', message: 'The request did not arrive in time' },
  413: { code: 'body_too_large', message: `The body is larger than ${MAX_BODY_BYTES} bytes` },
  414: { code: 'uri_too_long', message: 'The path is too long' },
  415: { code: 'media_type', message: 'The body must be application/json' },
};

/** A message that is no HTTP has no request and no reply; it gets the same body by hand, once. */
function clientErrorHandler(_error: Error, socket: Socket): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const body = JSON.stringify(errorBody('request_malformed', 'The request is malformed', randomUUID()));
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
