/** An absolute URL (or absolute-form target) in its one canonical form. */
import { type Authority, canonicalAuthority } from './authority.ts';
import { MAX_AUTHORITY_LENGTH, MAX_METHOD_LENGTH, MAX_TARGET_BYTES } from './bounds.ts';
import { canonical, failure } from './canonical.ts';
import { isMethodToken } from './methods.ts';
import { canonicalTarget } from './target.ts';
import type { Canonical, CanonicalTarget, HttpFacts, Scheme } from './types.ts';

export interface CanonicalUrl {
  readonly scheme: Scheme;
  readonly authority: Authority;
  readonly target: CanonicalTarget;
}

/** Reads `http://host[:port][/path][?query]` or https. An empty path is `/` (RFC 9110 section 4.2.3). */
export function canonicalUrl(raw: string): Canonical<CanonicalUrl> {
  if (raw.length > MAX_TARGET_BYTES + MAX_AUTHORITY_LENGTH) {
    return failure('target_too_long', `The URL is longer than ${MAX_TARGET_BYTES + MAX_AUTHORITY_LENGTH} bytes.`, 414);
  }
  const parts = /^(https?):\/\/([^/?]*)(.*)$/is.exec(raw);
  const [, name = '', host = '', rest = ''] = parts ?? [];
  if (parts === null) {
    return failure('url_malformed', 'The URL does not start with http:// or https:// and a host.');
  }
  const scheme: Scheme = name.toLowerCase() === 'https' ? 'https' : 'http';
  const authority = canonicalAuthority(host, scheme === 'https' ? 443 : 80);
  if (!authority.ok) {
    return authority;
  }
  const target = canonicalTarget(rest.startsWith('/') ? rest : `/${rest}`);
  return target.ok ? canonical({ scheme, authority: authority.value, target: target.value }) : target;
}

/** The facts of a request written as method and URL, as `policy explain` and in-file tests do. */
export function canonicalRequest(method: string, url: string): Canonical<HttpFacts> {
  if (!isMethodToken(method, MAX_METHOD_LENGTH)) {
    return failure('method_malformed', `The method is not a token of 1 to ${MAX_METHOD_LENGTH} characters.`);
  }
  const parsed = canonicalUrl(url);
  if (!parsed.ok) {
    return parsed;
  }
  const { scheme, authority, target } = parsed.value;
  return canonical({ scheme, destination: authority.destination, port: authority.port, method, target });
}
