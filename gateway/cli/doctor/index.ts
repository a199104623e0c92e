/** What this machine can do for Sallyport. */
import type { GatewayConfig } from '../../types.ts';
import type { Check } from './check.ts';
import { kernelChecks } from './kernel.ts';
import { placeChecks } from './place.ts';
import { runtimeChecks } from './runtime.ts';

export type { Check } from './check.ts';
export { runtimeChecks } from './runtime.ts';

/** Looks, opens its own ports for a moment, changes nothing. */
export async function examine(config: GatewayConfig): Promise<readonly Check[]> {
  return [...runtimeChecks(), ...(await placeChecks(config)), ...kernelChecks()];
}

/** True when nothing that the gateway needs is missing. */
export function isFit(checks: readonly Check[]): boolean {
  return !checks.some((check) => check.required && check.state === 'missing');
}

/** One line a check, then how to get what is not there. */
export function checksText(checks: readonly Check[]): string {
  const width = Math.max(...checks.map((check) => check.name.length));
  return checks
    .map((check) => {
      const line = `${check.state.padEnd(7)}  ${check.name.padEnd(width)}  ${check.why}`;
      return check.how === null ? line : `${line}\n${' '.repeat(width + 11)}→ ${check.how}`;
    })
    .join('\n');
}
