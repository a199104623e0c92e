/** Attaching and detaching callers while the gateway runs. */
import type { FastifyInstance } from 'fastify';
import { errorBody, errorSchema } from './create-app.ts';
import type { Gateway } from './types.ts';

export interface SandboxOptions {
  readonly gateway: Pick<Gateway, 'attach' | 'detach'>;
  /** Who is written into the audit log. */
  readonly actor: string;
}

export async function sandboxRoutes(app: FastifyInstance, { gateway, actor }: SandboxOptions): Promise<void> {
  app.post<{ Body: AttachBody }>('/admin/v1/sandboxes', { schema: attachSchema }, async (request, reply) => {
    const { policy, labels, socket } = request.body;
    const attached = await gateway.attach({ policy, labels: labels ?? {}, socket: socket ?? false, actor });
    reply.code(201);
    return attached;
  });

  app.delete<{ Params: { id: string } }>(
    '/admin/v1/sandboxes/:id',
    { schema: detachSchema },
    async (request, reply) => {
      if (await gateway.detach(request.params.id, actor)) return reply.code(204).send();
      return reply.code(404).send(errorBody('sandbox_unknown', 'There is no such sandbox', request.id));
    },
  );
}

interface AttachBody {
  readonly policy: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly socket?: boolean;
}

const attachSchema = {
  body: {
    type: 'object',
    required: ['policy'],
    additionalProperties: false,
    properties: {
      policy: { type: 'string', pattern: '^[a-z0-9-]{1,63}$' },
      labels: {
        type: 'object',
        maxProperties: 32,
        propertyNames: { pattern: '^[a-zA-Z0-9._/-]{1,63}$' },
        additionalProperties: { type: 'string', maxLength: 256, pattern: '^[^\\u0000-\\u001f\\u007f]*$' },
      },
      socket: { type: 'boolean' },
    },
  },
  response: {
    201: {
      type: 'object',
      required: ['id', 'token', 'proxyUrl', 'socketPath', 'caBundlePath', 'environment'],
      properties: {
        id: { type: 'string' },
        token: { type: 'string' },
        proxyUrl: { type: 'string' },
        socketPath: { type: ['string', 'null'] },
        caBundlePath: { type: 'string' },
        environment: { type: 'object', additionalProperties: { type: 'string' } },
      },
    },
    '4xx': errorSchema,
  },
} as const;

const detachSchema = {
  params: {
    type: 'object',
    required: ['id'],
    properties: { id: { type: 'string', pattern: '^[a-zA-Z0-9._-]{1,64}$' } },
  },
  response: { 204: { type: 'null' }, 404: errorSchema },
} as const;
