/** Tests that need something of the machine: skipped with the name of what is missing, failed when `REQUIRE_SYSTEM=1`. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import test, { type ExecutionContext, type ImplementationFn } from 'ava';

/** One thing a machine may lack. `missing` says what is lacking and how to get it; null = it is there. */
export interface Capability {
  readonly name: string;
  readonly missing: string | null;
}

/** Declares a test, like `test(title, implementation)`. */
export type Declare = (title: string, implementation: ImplementationFn<[]>) => void;

/**
 * A `test(…)` for tests that need all of `capabilities`.
 * On a machine without them the test is reported as skipped with the reason in its title, or fails when `REQUIRE_SYSTEM=1`.
 */
export function testNeeding(...capabilities: readonly Capability[]): Declare {
  const reason = missingOf(capabilities);
  if (reason === null) return (title, implementation) => test(title, implementation);
  if (isRequired()) return (title) => test(title, (t) => t.fail(`REQUIRE_SYSTEM=1, but ${reason}`));
  return (title, implementation) => test.skip(`${title} (${reason})`, implementation);
}

/** As {@link testNeeding}, for tests of a file that must run one after the other. */
export function serialTestNeeding(...capabilities: readonly Capability[]): Declare {
  const reason = missingOf(capabilities);
  if (reason === null) return (title, implementation) => test.serial(title, implementation);
  if (isRequired()) return (title) => test.serial(title, (t) => t.fail(`REQUIRE_SYSTEM=1, but ${reason}`));
  return (title, implementation) => test.serial.skip(`${title} (${reason})`, implementation);
}

/**
 * For what only shows while a test runs: true = go on. False = return at once; the reason is logged, or the test failed when `REQUIRE_SYSTEM=1`.
 * Prefer {@link testNeeding}, which reports a skip as a skip.
 */
export function skipOrFail(t: ExecutionContext, capability: Capability): boolean {
  if (capability.missing === null) return true;
  if (isRequired()) {
    t.fail(`REQUIRE_SYSTEM=1, but ${capability.missing}`);
    return false;
  }
  t.log(`skipped: ${capability.missing}`);
  t.pass();
  return false;
}

/** A program on PATH. `packageName` is the Debian package that has it. */
export function command(name: string, packageName: string = name): Capability {
  return { name, missing: isOnPath(name) ? null : `${name} is not installed (Debian: ${packageName})` };
}

/** The effective user is root. */
export function root(): Capability {
  return { name: 'root', missing: process.geteuid?.() === 0 ? null : 'this needs root' };
}

/** Anything else: probe it yourself; `missing` as in {@link Capability}. */
export function capability(name: string, missing: string | null): Capability {
  return { name, missing };
}

function missingOf(capabilities: readonly Capability[]): string | null {
  const reasons = capabilities.flatMap((one) => (one.missing === null ? [] : [one.missing]));
  return reasons.length === 0 ? null : reasons.join(', ');
}

function isRequired(): boolean {
  return process.env.REQUIRE_SYSTEM === '1';
}

function isOnPath(name: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => folder !== '' && isExecutable(join(folder, name)));
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
