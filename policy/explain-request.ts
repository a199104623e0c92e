/** `policy explain`: from the text of a request to its explanation. */
import { canonical } from './canonical.ts';
import type { CompiledPolicy } from './compiled.ts';
import { type Explanation, explain } from './explain.ts';
import type { Canonical, HttpFacts } from './types.ts';
import { canonicalRequest } from './url.ts';

/** Explains `method url`, and says what the canonical form changed. A request without one is refused before any rule. */
export function explainRequest(policy: CompiledPolicy, method: string, url: string): Canonical<Explanation> {
  const facts = canonicalRequest(method, url);
  return facts.ok ? canonical(explain(policy, facts.value, changes(url, facts.value))) : facts;
}

function changes(url: string, { destination, target }: HttpFacts): string[] {
  const [, host = '', rest = ''] = /^[^:]*:\/\/([^/?]*)([^?]*)/.exec(url) ?? [];
  const sentHost = host.replace(/:[0-9]*$/, '').replace(/^\[|\]$/g, '');
  const sentPath = rest === '' ? '/' : rest;
  const judgedHost = destination.kind === 'name' ? destination.name : destination.address;
  const found: string[] = [];
  if (sentHost !== judgedHost) {
    found.push(`host ${sentHost} is judged and sent as ${judgedHost}`);
  }
  if (sentPath !== target.path) {
    found.push(`path ${sentPath} is judged and sent as ${target.path}`);
  }
  if (target.path.includes(';')) {
    found.push('path parameters (;…) are sent, and rules must match with and without them');
  }
  if (target.encodedSlash) {
    found.push('%2F is kept; only rules with encodedSlash take it, and must match with a plain slash too');
  }
  return found;
}
