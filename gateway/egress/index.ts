/** The egress data path: listeners, callers and what they share. */
export type { Caller, PolicyGeneration, PolicySlot } from './callers.ts';
export { Callers, createCaller, SELFTEST_CALLER } from './callers.ts';
export type { EgressContext } from './context.ts';
export { Dialer, hostPort } from './dialer.ts';
export type { EgressLimits } from './limits.ts';
export { defaultLimits } from './limits.ts';
export type { Resolve } from './resolver.ts';
export { createResolver as createDnsResolver } from './resolver.ts';
export { EgressServer } from './server.ts';
export type { EgressStats } from './stats.ts';
export { createStats } from './stats.ts';
export { UpstreamPool } from './upstream-pool.ts';
export type { WireMode } from './wire.ts';
