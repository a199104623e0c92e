/** Counters of the egress path: plain integers on the hot path, read by the metrics page. */
export interface EgressStats {
  connections: number;
  openConnections: number;
  requests: number;
  allowed: number;
  denied: number;
  faults: number;
  upstreamDials: number;
  upstreamReuses: number;
  handshakeFailures: number;
  redactions: number;
  internalErrors: number;
}

export function createStats(): EgressStats {
  return {
    connections: 0,
    openConnections: 0,
    requests: 0,
    allowed: 0,
    denied: 0,
    faults: 0,
    upstreamDials: 0,
    upstreamReuses: 0,
    handshakeFailures: 0,
    redactions: 0,
    internalErrors: 0,
  };
}
