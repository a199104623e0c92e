/** Typed descriptions of configuration values: one table both checks a document and publishes its JSON Schema. */

/** Where a value sits in the document, from the root. */
export type ValuePath = readonly (string | number)[];

/** Takes what is wrong at a place; the caller knows the file and turns paths into lines. */
export type Report = (path: ValuePath, problem: ShapeProblem) => void;

export interface ShapeProblem {
  readonly code: ConfigProblemCode;
  readonly message: string;
  readonly hint?: string;
  /** The position wanted is that of the key, not of its value. */
  readonly atKey?: boolean;
}

/** Codes of configuration problems, listed in gateway/config/README.md. */
export type ConfigProblemCode = (typeof configProblemCodes)[number];

export const configProblemCodes = [
  'CONFIG_UNREADABLE',
  'CONFIG_SYNTAX',
  'CONFIG_UNKNOWN_KEY',
  'CONFIG_UNSUPPORTED',
  'CONFIG_TYPE',
  'CONFIG_VALUE',
  'CONFIG_CONFLICT',
  'CONFIG_EXPOSED',
] as const;

export type JsonSchema = Readonly<Record<string, unknown>>;

/** One kind of value. `read` gives undefined when it reported a problem. */
export interface Shape<T> {
  readonly schema: JsonSchema;
  read(value: unknown, path: ValuePath, report: Report): T | undefined;
}

/** A string that `parse` turns into a T or refuses with a message. `form` says in words what is expected. */
export function text<T>(
  form: string,
  parse: (value: string) => T | undefined,
  options: { schema?: JsonSchema; hint?: string; maxLength?: number } = {},
): Shape<T> {
  const maxLength = options.maxLength ?? MAX_TEXT;
  const hint = options.hint === undefined ? {} : { hint: options.hint };
  return {
    schema: { type: 'string', maxLength, description: form, ...options.schema },
    read(value, path, report) {
      if (typeof value !== 'string') {
        report(path, { code: 'CONFIG_TYPE', message: `expected ${form}, got ${kindOf(value)}`, ...hint });
        return undefined;
      }
      const parsed = value.length > maxLength || /[\x00-\x1f\x7f]/.test(value) ? undefined : parse(value);
      if (parsed === undefined) report(path, { code: 'CONFIG_VALUE', message: `expected ${form}`, ...hint });
      return parsed;
    },
  };
}

/** One of a few words. */
export function oneOf<const T extends string>(words: readonly T[]): Shape<T> {
  const shape = text(words.map((word) => `\`${word}\``).join(' or '), (value) => words.find((word) => word === value));
  return { ...shape, schema: { enum: words } };
}

/** A whole number within bounds, both included. */
export function integer(minimum: number, maximum: number): Shape<number> {
  return {
    schema: { type: 'integer', minimum, maximum },
    read(value, path, report) {
      if (typeof value !== 'number') {
        report(path, { code: 'CONFIG_TYPE', message: `expected a whole number, got ${kindOf(value)}` });
        return undefined;
      }
      if (Number.isInteger(value) && value >= minimum && value <= maximum) return value;
      report(path, { code: 'CONFIG_VALUE', message: `expected a whole number from ${minimum} to ${maximum}` });
      return undefined;
    },
  };
}

/** A list of at most `max` values; wrong items are reported and left out. */
export function list<T>(item: Shape<T>, max: number): Shape<readonly T[]> {
  return {
    schema: { type: 'array', items: item.schema, maxItems: max },
    read(value, path, report) {
      if (!Array.isArray(value)) {
        const hint = 'write it as a list: [a, b]';
        report(path, { code: 'CONFIG_TYPE', message: `expected a list, got ${kindOf(value)}`, hint });
        return undefined;
      }
      if (value.length > max) {
        report(path, { code: 'CONFIG_VALUE', message: `expected at most ${max} entries` });
        return undefined;
      }
      const items = value.map((entry: unknown, index) => item.read(entry, [...path, index], report));
      return items.filter((entry) => entry !== undefined);
    },
  };
}

/** Free keys (each through `key`) with values of one kind. */
export function record<T>(key: RegExp, value: Shape<T>, max: number): Shape<Readonly<Record<string, T>>> {
  return {
    schema: {
      type: 'object',
      propertyNames: { pattern: key.source },
      additionalProperties: value.schema,
      maxProperties: max,
    },
    read(source, path, report) {
      if (!isMapping(source)) {
        report(path, { code: 'CONFIG_TYPE', message: `expected keys and values, got ${kindOf(source)}` });
        return undefined;
      }
      const entries = Object.entries(source);
      if (entries.length > max) report(path, { code: 'CONFIG_VALUE', message: `expected at most ${max} keys` });
      const read: [string, T][] = [];
      for (const [name, entry] of entries.slice(0, max)) {
        if (!key.test(name)) {
          report([...path, name], { code: 'CONFIG_VALUE', message: 'this key is not a valid name', atKey: true });
          continue;
        }
        const parsed = value.read(entry, [...path, name], report);
        if (parsed !== undefined) read.push([name, parsed]);
      }
      return Object.fromEntries(read);
    },
  };
}

/** A key that the product knows and this version does not do yet: refused by name, so that nobody believes it is on. */
export function unsupported(what: string): Shape<never> {
  return {
    schema: { not: {}, description: `${what}: not supported by this version` },
    read(_value, path, report) {
      report(path, { code: 'CONFIG_UNSUPPORTED', message: `${what} is not supported by this version`, atKey: true });
      return undefined;
    },
  };
}

/** A mapping of exactly these keys, each optional unless named in `required`. */
export function object<F extends Readonly<Record<string, Shape<unknown>>>>(
  fields: F,
  options: { required?: readonly (keyof F & string)[]; description?: string } = {},
): Shape<ObjectOf<F>> {
  const required = options.required ?? [];
  const properties = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.schema]));
  return {
    schema: {
      type: 'object',
      ...(options.description === undefined ? {} : { description: options.description }),
      properties,
      required,
      additionalProperties: false,
    },
    read(value, path, report) {
      if (!isMapping(value)) {
        const known = Object.keys(fields).join(', ');
        report(path, {
          code: 'CONFIG_TYPE',
          message: `expected keys and values, got ${kindOf(value)}`,
          hint: `the keys here are: ${known}`,
        });
        return undefined;
      }
      for (const name of required) {
        if (!Object.hasOwn(value, name)) report(path, { code: 'CONFIG_VALUE', message: `\`${name}\` is missing` });
      }
      return readFields(fields, value, path, report);
    },
  };
}

export type ObjectOf<F> = { readonly [K in keyof F]?: F[K] extends Shape<infer T> ? T : never };

// Longest value of any key: the longest path Linux takes.
const MAX_TEXT = 4096;

function readFields<F extends Readonly<Record<string, Shape<unknown>>>>(
  fields: F,
  value: Readonly<Record<string, unknown>>,
  path: ValuePath,
  report: Report,
): ObjectOf<F> {
  const read: Record<string, unknown> = {};
  for (const [name, entry] of Object.entries(value)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (field === undefined) {
      report([...path, name], unknownKey(name, Object.keys(fields)));
      continue;
    }
    const parsed = field.read(entry, [...path, name], report);
    if (parsed !== undefined) read[name] = parsed;
  }
  // Each entry of `read` came out of the field of the same name, so it has that field's type.
  return read as ObjectOf<F>;
}

function unknownKey(name: string, known: readonly string[]): ShapeProblem {
  const near = nearest(name, known);
  const hint = near === undefined ? `the keys here are: ${known.join(', ')}` : `did you mean \`${near}\`?`;
  return { code: 'CONFIG_UNKNOWN_KEY', message: 'unknown key', hint, atKey: true };
}

/** The known word at most two edits (or a third of its length) away. */
function nearest(word: string, known: readonly string[]): string | undefined {
  let best: { word: string; distance: number } | undefined;
  // A key longer than any known one cannot be near; the bound keeps the table small.
  const given = word.slice(0, 64).toLowerCase();
  for (const candidate of known) {
    const distance = editDistance(given, candidate.toLowerCase());
    if (distance <= Math.max(2, candidate.length / 3) && (best === undefined || distance < best.distance))
      best = { word: candidate, distance };
  }
  return best?.word;
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      row.push(Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (previous[j - 1] ?? 0) + same));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'keys and values';
  return typeof value === 'string' ? 'text' : `a ${typeof value}`;
}
