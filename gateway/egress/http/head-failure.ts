/** Why a head was not accepted: a value, since bad input is no exception. */
export interface HeadFailure {
  readonly status: number;
  readonly code: string;
  readonly reason: string;
}

export function fail(status: number, code: string, reason: string): HeadFailure {
  return { status, code, reason };
}
