/** From a credential that satisfies the schema to a {@link CredentialSpec}. Nothing here repeats what `secret` or `inject` say. */
import type { CredentialBind, CredentialInject, CredentialSpec } from '../types.ts';
import type { DocumentCheck } from './document-check.ts';
import { type FieldContext, readHosts, readMethods, readPaths } from './fields.ts';
import type { RawBind, RawCredential, RawInject } from './raw-document.ts';
import type { DocumentPath } from './schema-problems.ts';

/** Null when something was reported. */
export function readCredential(raw: RawCredential, index: number, check: DocumentCheck): CredentialSpec | null {
  const path = ['credentials', index];
  const isReference = checkReference(raw.secret, [...path, 'secret'], check);
  const bind = readBind(raw.bind, [...path, 'bind'], check);
  const inject = readInject(raw.inject, [...path, 'inject'], check);
  if (!isReference || bind === null || inject === null) return null;
  return {
    name: raw.name,
    secret: raw.secret,
    bind,
    inject,
    allowCleartext: raw.allowCleartext ?? false,
    onClientCredential: raw.onClientCredential ?? 'deny',
    line: check.line(path),
  };
}

/** Texts that may be a value written where its reference belongs are never quoted in a problem. */
export function mayHoldSecret(path: DocumentPath): boolean {
  if (path[0] !== 'credentials') return false;
  return path.length <= 2 || path[2] === 'secret' || path[2] === 'inject';
}

/** Same forms as the vault's own parser, which reads the reference again when it resolves it. */
const references: Readonly<Record<string, RegExp>> = {
  vault: /^vault:(?!.*\.\.)[A-Za-z0-9._/-]{1,128}(?:@[1-9][0-9]{0,8})?$/,
  env: /^env:[A-Za-z_][A-Za-z0-9_]{0,127}$/,
  file: /^file:[^\u0000-\u001f\u007f]+$/,
};

/** The one message for a value in the place of a reference, also used for what the schema refuses. */
export const literalSecret = {
  code: 'SECRET_LITERAL',
  message: 'a secret is named, never written into a policy (the text is not shown)',
  hint: 'Write vault:NAME, env:NAME or file:PATH. If this was a real value, it is now in the file: rotate it.',
} as const;

function checkReference(secret: string, path: DocumentPath, check: DocumentCheck): boolean {
  const kind = secret.slice(0, Math.max(0, secret.indexOf(':')));
  const form = Object.hasOwn(references, kind) ? references[kind] : undefined;
  if (form === undefined) {
    check.report(path, literalSecret);
    return false;
  }
  if (form.test(secret)) return true;
  const message = `this \`${kind}:\` reference is malformed (the text is not shown)`;
  const hint =
    'vault:NAME takes letters, digits and . _ / -, optionally @VERSION; env:NAME a variable name; file:PATH a path.';
  check.report(path, { code: 'SECRET_REFERENCE', message, hint });
  return false;
}

function readBind(raw: RawBind, path: DocumentPath, check: DocumentCheck): CredentialBind | null {
  const context: FieldContext = { check, path, effect: 'allow', unsafeWide: false, mayBeWide: false };
  const hosts = readHosts(raw.hosts, context);
  const methods = readMethods(raw.methods, context);
  const paths = readPaths(raw.paths, context);
  if (hosts === null || methods === null || paths === null) return null;
  return { hosts, methods, paths, ports: raw.ports ?? [] };
}

function readInject(raw: RawInject, path: DocumentPath, check: DocumentCheck): CredentialInject | null {
  if (raw.header !== undefined && raw.basic !== undefined) {
    const message = 'a credential is injected as `header` or as `basic`, not both';
    check.report(path, { code: 'INJECT', message, hint: 'Keep one of them.' });
    return null;
  }
  if (raw.basic !== undefined) return readBasic(raw, raw.basic.username, path, check);
  if (raw.header !== undefined) return readHeader(raw.header, raw.format, path, check);
  check.report(path, { code: 'INJECT', message: '`format` needs the `header` it is for', atKey: true });
  return null;
}

/** RFC 7617 section 2: no colon and no control characters. Printable ASCII, because receivers disagree about anything else. */
const username = /^[ -9;-~]*$/;

function readBasic(raw: RawInject, name: string, path: DocumentPath, check: DocumentCheck): CredentialInject | null {
  if (raw.format !== undefined) {
    check.report([...path, 'format'], { code: 'INJECT', message: '`format` does not go with `basic`', atKey: true });
    return null;
  }
  if (username.test(name)) return { kind: 'basic', username: name };
  const message = 'a user name has no colon, no control characters and no letters beyond ASCII (RFC 7617)';
  check.report([...path, 'basic', 'username'], { code: 'INJECT', message });
  return null;
}

function readHeader(
  header: string,
  format: string | undefined,
  path: DocumentPath,
  check: DocumentCheck,
): CredentialInject | null {
  const isHeader = checkHeader(header, [...path, 'header'], check);
  const isFormat = checkFormat(format ?? '{secret}', [...path, 'format'], check);
  return isHeader && isFormat ? { kind: 'header', header: header.toLowerCase(), format: format ?? '{secret}' } : null;
}

/** RFC 9110 section 5.6.2. */
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Framing, routing and hop-by-hop: a secret there would be lost on the way, or change where and what the request is. */
const reservedHeader =
  /^(?:host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|via|forwarded|date|range|accept-encoding|alt-used|http2-settings|x-http-method(?:-override)?|x-method-override|x-original-url|x-rewrite-url|(?:content|proxy|sec|x-forwarded|x-sallyport)-.*|x-real-ip)$/;

function checkHeader(header: string, path: DocumentPath, check: DocumentCheck): boolean {
  if (!token.test(header)) {
    check.report(path, { code: 'HEADER', message: 'a header name is letters, digits and hyphens (RFC 9110 token)' });
    return false;
  }
  if (!reservedHeader.test(header.toLowerCase())) return true;
  const message = 'this header frames or routes the request and never carries a credential';
  check.report(path, { code: 'HEADER', message, hint: 'For example Authorization or X-Api-Key.' });
  return false;
}

/** RFC 9110 section 5.5: visible ASCII and single spaces inside. */
const headerValue = /^[!-~](?:[ -~]*[!-~])?$/;

function checkFormat(format: string, path: DocumentPath, check: DocumentCheck): boolean {
  const count = format.split('{secret}').length - 1;
  if (count !== 1) {
    const message = `a format holds {secret} exactly once, this one ${count === 0 ? 'never' : `${count} times`}`;
    check.report(path, { code: 'FORMAT', message, hint: 'For example "Bearer {secret}".' });
    return false;
  }
  if (headerValue.test(format)) return true;
  const message = 'a header value is printable ASCII without line breaks and without spaces at its ends';
  check.report(path, { code: 'FORMAT', message });
  return false;
}
