/** The gateway's own log: one JSON object a line on stderr, without secrets. The audit log is another thing. */
export type LogLevel = 'info' | 'warn' | 'error';
export type Log = (level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>) => void;

/** `redact` takes known secret values out of the finished line. */
export function createLog(write: (line: string) => void, redact: (text: string) => string): Log {
  return (level, message, fields = {}) => {
    write(`${redact(JSON.stringify({ time: new Date().toISOString(), level, message, ...fields }))}\n`);
  };
}

/** What may be said of an unknown error: its code and message; a stack could quote arguments. */
export function errorFields(error: unknown): Readonly<Record<string, unknown>> {
  if (!(error instanceof Error)) return { error: 'unknown' };
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {};
  return { error: error.message, ...code };
}
