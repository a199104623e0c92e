/** What a run has started and must end again, in reverse order, also when it is interrupted. */

type Step = () => void | Promise<void>;

/** An undo list. `close()` runs every step once, newest first, and may be called twice; a failing step does not stop the others. */
export class Undo {
  #steps: Step[] = [];
  #closing: Promise<void> | null = null;

  /** Takes a step. Once closing has begun it is taken into that round, so what starts during an interruption is ended too. */
  add(step: Step): void {
    this.#steps.push(step);
  }

  close(): Promise<void> {
    this.#closing ??= this.#run();
    return this.#closing;
  }

  async #run(): Promise<void> {
    const failures: unknown[] = [];
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step();
      } catch (cause) {
        failures.push(cause);
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, 'Cannot clean up everything');
  }
}

/** Runs `work` with an undo list that is closed when it ends, fails, or the process gets SIGINT, SIGTERM or SIGHUP. */
export async function withUndo<T>(work: (undo: Undo) => Promise<T>): Promise<T> {
  const undo = new Undo();
  const interrupted = (signal: NodeJS.Signals) => {
    console.error(`${signal}: stopping everything that was started`);
    void undo.close().finally(() => process.exit(130));
  };
  const signals: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  for (const signal of signals) process.once(signal, interrupted);
  try {
    return await work(undo);
  } finally {
    await undo.close();
    for (const signal of signals) process.off(signal, interrupted);
  }
}
