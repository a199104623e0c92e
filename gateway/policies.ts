/** The policies in force: all files of one folder, loaded together or not at all. */
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { PolicyProblem } from '../policy/index.ts';
import { formatProblems, loadPolicy } from '../policy/index.ts';
import type { PolicyGeneration, PolicySlot } from './egress/index.ts';
import { GatewayError } from './errors.ts';

/** Policies of one gateway: a bound on what a folder can make us compile. */
const MAX_POLICIES = 1_000;

export interface PolicyReload {
  readonly ok: boolean;
  readonly problems: string;
  readonly changed: readonly PolicyGeneration['info'][];
}

export class Policies {
  readonly #dir: string;
  readonly #slots = new Map<string, PolicySlot>();
  #generation = 0;

  constructor(dir: string) {
    this.#dir = dir;
  }

  get generation(): number {
    return this.#generation;
  }

  /** The slot of a name; one that no file fills denies everything until one does. */
  slot(name: string): PolicySlot {
    const known = this.#slots.get(name);
    if (known !== undefined) return known;
    const slot: PolicySlot = { name, current: null };
    this.#slots.set(name, slot);
    return slot;
  }

  loaded(): PolicyGeneration[] {
    return [...this.#slots.values()].flatMap((slot) => (slot.current === null ? [] : [slot.current]));
  }

  /** Invariant: a folder in which one file does not load changes nothing. An unchanged policy keeps its generation. */
  async reload(): Promise<PolicyReload> {
    const loaded = await this.#load();
    if (!loaded.ok) return { ok: false, problems: loaded.problems, changed: [] };
    const next = this.#generation + 1;
    const changed: PolicyGeneration['info'][] = [];
    for (const [name, compiled] of loaded.policies) {
      const slot = this.slot(name);
      if (slot.current?.info.digest === compiled.digest) continue;
      const info = { name, digest: compiled.digest, generation: next };
      slot.current = { compiled, info };
      changed.push(info);
    }
    for (const slot of this.#slots.values()) {
      if (slot.current === null || loaded.policies.has(slot.name)) continue;
      changed.push({ ...slot.current.info, generation: next });
      slot.current = null;
    }
    if (changed.length > 0) this.#generation = next;
    return { ok: true, problems: '', changed };
  }

  async #load() {
    const policies = new Map<string, PolicyGeneration['compiled']>();
    const problems: PolicyProblem[] = [];
    let files: string[];
    try {
      files = (await readdir(this.#dir)).filter((name) => ['.yaml', '.yml', '.json'].includes(extname(name))).sort();
    } catch (cause) {
      throw new GatewayError('GATEWAY_POLICY_MISSING', `Cannot read policies: ${this.#dir} is not a readable folder`, {
        cause,
      });
    }
    if (files.length > MAX_POLICIES) {
      throw new GatewayError(
        'GATEWAY_POLICY_INVALID',
        `Cannot load policies: ${files.length} files, at most ${MAX_POLICIES}`,
      );
    }
    const owners = new Map<string, string>();
    for (const name of files) {
      const file = join(this.#dir, name);
      const result = loadPolicy(await readFile(file), { file });
      if (!result.ok) {
        problems.push(...result.problems);
        continue;
      }
      const other = owners.get(result.policy.name);
      if (other !== undefined) problems.push(duplicate(file, result.policy.name, other));
      owners.set(result.policy.name, file);
      policies.set(result.policy.name, result.policy);
    }
    return problems.length > 0
      ? { ok: false as const, problems: formatProblems(problems) }
      : { ok: true as const, policies };
  }
}

function duplicate(file: string, name: string, other: string): PolicyProblem {
  return {
    code: 'POLICY_NAME_TAKEN',
    severity: 'error',
    message: `The policy name ${name} is used by ${other} already.`,
    file,
    line: 1,
    column: 1,
    hint: 'Give each file its own name.',
  };
}
