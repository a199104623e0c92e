/** Builds the header line of one credential from its open secret. */
import { inspect } from 'node:util';
import type { CompiledCredential, CredentialInject } from '../policy/types.ts';
import { VaultError } from './errors.ts';
import type { ResolvedSecret } from './references.ts';
import { checkHeaderValue, checkPassword } from './secret-value.ts';
import type { PreparedCredential } from './types.ts';

/** Common servers refuse a header line above 8 or 16 KiB. */
export const MAX_LINE_BYTES = 16_384;
/**
 * Shorter values are not looked for in responses: they would turn up by chance in ordinary bodies, damage them,
 * and the damage would tell the sandbox which bytes the secret has.
 */
export const MIN_ECHO_BYTES = 6;

const PLACE = '{secret}';
/** RFC 9110 section 5.6.2, lower-case. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]{1,128}$/;

/**
 * Copies what it needs of `secret`; the caller may wipe it.
 * @throws VaultError `VAULT_SECRET_MALFORMED`
 */
export function prepareCredential(credential: CompiledCredential, secret: ResolvedSecret): PreparedCredential {
  const { name, inject } = credential.spec;
  const injected = inject.kind === 'basic' ? basicValue(name, inject, secret) : formattedValue(name, inject, secret);
  if (!HEADER_NAME.test(credential.slot)) throw malformed(name, 'its slot is not a header name');
  const line = Buffer.concat([Buffer.from(`${credential.slot}: `, 'latin1'), injected.header, Buffer.from('\r\n')]);
  if (line.length > MAX_LINE_BYTES) throw malformed(name, `its header line is longer than ${MAX_LINE_BYTES} bytes`);
  return new OpenCredential(credential, secret.version, line, distinctEchoes(injected.echoes));
}

/** Invariant: nothing that prints this object prints a byte of the secret. */
class OpenCredential implements PreparedCredential {
  readonly credential: CompiledCredential;
  readonly name: string;
  readonly version: string;
  readonly slot: string;
  readonly line: Buffer;
  readonly echoes: readonly Buffer[];

  constructor(credential: CompiledCredential, version: string, line: Buffer, echoes: readonly Buffer[]) {
    this.credential = credential;
    this.name = credential.spec.name;
    this.version = version;
    this.slot = credential.slot;
    this.line = line;
    this.echoes = echoes;
  }

  toJSON(): Record<string, string> {
    return { name: this.name, version: this.version, slot: this.slot };
  }

  [inspect.custom](): string {
    return `PreparedCredential(${this.name}@${this.version} in ${this.slot})`;
  }
}

interface Injected {
  readonly header: Buffer;
  readonly echoes: readonly Buffer[];
}

function basicValue(name: string, inject: CredentialInject & { kind: 'basic' }, secret: ResolvedSecret): Injected {
  checkPassword(name, secret.value);
  const username = Buffer.from(inject.username, 'utf8');
  if (username.includes(':') || username.some((byte) => byte < 0x20 || byte === 0x7f)) {
    throw malformed(name, 'its username holds a colon or control characters');
  }
  const pair = Buffer.concat([username, Buffer.from(':'), secret.value]);
  const token = Buffer.from(pair.toString('base64'), 'latin1');
  pair.fill(0);
  const header = Buffer.concat([Buffer.from('Basic '), token]);
  return { header, echoes: [header, token, Buffer.from(secret.value)] };
}

/** Cut and joined as bytes: a text replacement would read `$&` in a value as an instruction. */
function formattedValue(name: string, inject: CredentialInject & { kind: 'header' }, secret: ResolvedSecret): Injected {
  checkHeaderValue(name, secret.value);
  const [before, after, ...more] = inject.format.split(PLACE);
  if (before === undefined || after === undefined || more.length > 0) {
    throw malformed(name, `its format does not hold ${PLACE} exactly once`);
  }
  const header = Buffer.concat([Buffer.from(before, 'utf8'), secret.value, Buffer.from(after, 'utf8')]);
  checkHeaderValue(name, header);
  return { header, echoes: [header, Buffer.from(secret.value)] };
}

function distinctEchoes(echoes: readonly Buffer[]): readonly Buffer[] {
  return echoes
    .filter((echo) => echo.length >= MIN_ECHO_BYTES)
    .sort((a, b) => b.length - a.length)
    .filter((echo, at, all) => all.findIndex((other) => other.equals(echo)) === at);
}

function malformed(name: string, state: string): VaultError {
  return new VaultError('VAULT_SECRET_MALFORMED', `Cannot use credential ${name}: ${state}`);
}
