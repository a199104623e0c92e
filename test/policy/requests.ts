/** Requests and decisions as one line of text, for tables. */
import { canonicalRequest, type Decision, type HttpFacts } from '../../policy/index.ts';

/** The facts of `METHOD URL`. */
export function facts(text: string): HttpFacts {
  const [method = '', url = ''] = text.split(' ');
  const result = canonicalRequest(method, url);
  if (!result.ok) throw new Error(`Cannot ask ${text}: ${result.code}`);
  return result.value;
}

/** `verdict code rule`, with `-` for no rule. */
export function shown({ verdict, code, rule: name }: Decision): string {
  return `${verdict} ${code} ${name ?? '-'}`;
}
