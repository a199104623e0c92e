/** Method lists of rules and bindings: presets expanded, spelling checked. */

/** RFC 9110 section 9.3 and RFC 5789. */
const presets: ReadonlyMap<string, readonly string[]> = new Map([
  ['read', ['GET', 'HEAD']],
  ['write', ['POST', 'PUT', 'PATCH', 'DELETE']],
]);

export type ExpandedMethods =
  | { readonly ok: true; readonly methods: readonly string[] }
  | { readonly ok: false; readonly index: number; readonly message: string; readonly hint: string };

/** RFC 9110 section 5.6.2; the longest registered method has 17 characters. */
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$/;

/**
 * Upper-case methods with `read` and `write` expanded. `any` becomes the empty list, which is every registered method where
 * something is opened and every method where something is refused; `*` stays and takes unknown methods too.
 */
export function expandMethods(written: readonly string[]): ExpandedMethods {
  const methods = new Set<string>();
  for (const [index, name] of written.entries()) {
    if (name === '*' || name === 'any') {
      if (written.length === 1) return { ok: true, methods: name === 'any' ? [] : ['*'] };
      return { ok: false, index, message: `\`${name}\` must stand alone`, hint: 'It already takes the other methods.' };
    }
    const preset = presets.get(name);
    const problem = preset === undefined ? methodProblem(name) : null;
    if (problem !== null) return { ok: false, index, ...problem };
    for (const method of preset ?? [name]) methods.add(method);
  }
  return { ok: true, methods: [...methods] };
}

function methodProblem(name: string): { readonly message: string; readonly hint: string } | null {
  const upper = name.toUpperCase();
  if (!token.test(name)) return { message: 'this is no HTTP method', hint: 'For example GET, or read, write, any.' };
  const lower = name.toLowerCase();
  if (presets.has(lower) || lower === 'any') {
    return { message: 'presets are written in lower case', hint: `Did you mean \`${lower}\`?` };
  }
  if (name !== upper) {
    // RFC 9110 section 9.1: methods are case-sensitive, so `get` would be a rule for a method nobody sends.
    return { message: 'methods are written in upper case', hint: `Did you mean \`${upper}\`?` };
  }
  if (upper === 'CONNECT' || upper === 'TRACE') {
    // CONNECT is judged by what goes through it; TRACE would send an injected credential back.
    return { message: `${upper} is not a rule's business`, hint: 'Remove it; TRACE needs `*`.' };
  }
  return null;
}
