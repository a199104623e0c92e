/** `/healthz`, `/readyz` and `/metrics`: what a supervisor and a scraper ask. */
import type { FastifyInstance } from 'fastify';
import type { Gateway } from './types.ts';

export interface HealthOptions {
  readonly gateway: Pick<Gateway, 'status' | 'metrics'>;
  /** Say why traffic is refused: only where the asker is the operator. */
  readonly showReason: boolean;
}

export async function healthRoutes(app: FastifyInstance, { gateway, showReason }: HealthOptions): Promise<void> {
  app.get('/healthz', { schema: { response: { 200: statusSchema } } }, () => ({ status: 'ok' }));

  app.get('/readyz', { schema: { response: { 200: statusSchema, 503: statusSchema } } }, (_request, reply) => {
    const { refusing } = gateway.status();
    if (refusing === null) return { status: 'ready' };
    reply.code(503);
    return showReason ? { status: 'refusing', reason: refusing } : { status: 'refusing' };
  });

  app.get('/metrics', { schema: { response: { 200: { type: 'string' } } } }, async (_request, reply) => {
    reply.type('text/plain; version=0.0.4; charset=utf-8');
    return gateway.metrics();
  });
}

const statusSchema = {
  type: 'object',
  required: ['status'],
  properties: { status: { type: 'string' }, reason: { type: 'string' } },
} as const;
