/** Prometheus metrics, read from the plain counters of the egress path when asked. */
import { Gauge, Registry } from 'prom-client';
import type { AuditLog } from './audit/index.ts';
import type { EgressStats } from './egress/index.ts';

const HELP: Record<keyof EgressStats, string> = {
  connections: 'Client connections accepted.',
  openConnections: 'Client connections open now.',
  requests: 'Requests read, whatever became of them.',
  allowed: 'Requests forwarded.',
  denied: 'Requests refused by decision.',
  faults: 'Requests refused because something failed.',
  upstreamDials: 'Upstream connections opened.',
  upstreamReuses: 'Requests sent on a kept upstream connection.',
  handshakeFailures: 'TLS handshakes with clients that failed.',
  redactions: 'Echoed secret values masked in responses.',
  internalErrors: 'Faults of the gateway itself; each refused its request.',
};

export function createMetrics(stats: EgressStats, audit: AuditLog): () => Promise<string> {
  const registry = new Registry();
  for (const [name, help] of Object.entries(HELP) as [keyof EgressStats, string][]) {
    // the table has exactly these keys
    const metric = `sallyport_egress_${name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`;
    new Gauge({
      name: metric,
      help,
      registers: [registry],
      collect() {
        this.set(stats[name]);
      },
    });
  }
  new Gauge({
    name: 'sallyport_audit_seq',
    help: 'Sequence number of the last audit record.',
    registers: [registry],
    collect() {
      this.set(audit.status().seq);
    },
  });
  new Gauge({
    name: 'sallyport_audit_queued',
    help: 'Audit records reserved or waiting to be written.',
    registers: [registry],
    collect() {
      this.set(audit.status().queued);
    },
  });
  new Gauge({
    name: 'sallyport_audit_healthy',
    help: '1 while the audit log can be written.',
    registers: [registry],
    collect() {
      this.set(audit.status().healthy ? 1 : 0);
    },
  });
  return () => registry.metrics();
}
