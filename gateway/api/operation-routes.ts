/** What an operator does to a running gateway: look, reload, test. */
import type { FastifyInstance } from 'fastify';
import { errorBody, errorSchema } from './create-app.ts';
import type { Gateway } from './types.ts';

export interface OperationOptions {
  readonly gateway: Pick<Gateway, 'status' | 'reload' | 'selftest'>;
  /** Who is written into the audit log. */
  readonly actor: string;
}

export async function operationRoutes(app: FastifyInstance, { gateway, actor }: OperationOptions): Promise<void> {
  app.get('/admin/v1/status', { schema: { response: { 200: openObject } } }, () => gateway.status());

  app.post('/admin/v1/reload', { schema: reportSchema }, async (request, reply) => {
    const report = await gateway.reload(actor);
    if (report.ok) return report;
    reply.code(409);
    return { ...report, ...errorBody('reload_refused', 'What was loaded before stays in force', request.id) };
  });

  app.post('/admin/v1/selftest', { schema: reportSchema }, async (request, reply) => {
    const report = await gateway.selftest();
    if (report.ok) return report;
    reply.code(409);
    return { ...report, ...errorBody('selftest_failed', 'All traffic is refused until it passes', request.id) };
  });
}

const openObject = { type: 'object', additionalProperties: true } as const;
/** Neither takes a body: nothing a caller sends could change what is done. */
const reportSchema = {
  body: { type: 'null' },
  response: { 200: openObject, 409: { ...openObject, properties: errorSchema.properties } },
} as const;
