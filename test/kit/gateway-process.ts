/**
 * A gateway in a process of its own, so that it can be killed. Reads its configuration as one line of JSON on stdin, starts,
 * and prints one line: port and a caller's credential. Started early, it waits for that line with all code loaded.
 */
import { createInterface } from 'node:readline';
import { type Gateway, type GatewayConfig, startGateway } from '../../gateway/index.ts';

/** What the process prints. */
export interface GatewayProcessReady {
  readonly port: number;
  readonly id: string;
  readonly token: string;
}

let gateway: Gateway | null = null;
for await (const line of createInterface({ input: process.stdin })) {
  // Written by the test that started this process.
  const config = JSON.parse(line) as GatewayConfig;
  gateway = await startGateway(config);
  const { id, token } = await gateway.attach({ policy: config.policies.default, labels: {}, actor: 'test' });
  const ready: GatewayProcessReady = { port: gateway.proxyAddresses[0]?.port ?? 0, id, token };
  process.stdout.write(`${JSON.stringify(ready)}\n`);
}
// The end of stdin is the order to stop.
await gateway?.close();
