/** Waits for the signal that ends a gateway. */

export interface StopOptions {
  /** SIGHUP. */
  readonly onHangup: () => void;
}

/**
 * Resolves with the first SIGINT or SIGTERM. A second one ends the process at once, for whoever does not want to wait for
 * running exchanges; the audit log recovers from that as from a crash.
 */
export function untilStopped({ onHangup }: StopOptions): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let isStopping = false;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (isStopping) process.exit(128 + (signal === 'SIGINT' ? 2 : 15));
      isStopping = true;
      resolve(signal);
    };
    process.on('SIGINT', onSignal).on('SIGTERM', onSignal).on('SIGHUP', onHangup);
  });
}
