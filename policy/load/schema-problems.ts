/** Checks a located tree against a JSON Schema and says what is wrong in words, at the right place. */
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { didYouMean } from './did-you-mean.ts';
import { clip, type Finding, type ProblemList, type Span } from './problem.ts';
import type { Located } from './strict-tree.ts';

export type DocumentPath = readonly (string | number)[];

export interface SchemaCheckOptions {
  /** JSON Schema draft 2020-12. */
  readonly schema: object;
  /** True for places whose text may be a secret: their excerpts are withheld. */
  readonly withhold?: ((path: DocumentPath) => boolean) | undefined;
  /** True for problems somebody else already reported. */
  /** Code and message for places that deserve their own. */
  readonly rename?:
    | ((path: DocumentPath, keyword: string) => Pick<Finding, 'code' | 'message' | 'hint'> | null)
    | undefined;
  readonly skip?: ((path: DocumentPath, keyword: string) => boolean) | undefined;
}

/** Adds every violation to `problems` and returns the places whose value is wrong (an unknown key spoils no other). `value` is checked; `tree` gives the places. */
export function addSchemaProblems(
  value: unknown,
  tree: Located,
  options: SchemaCheckOptions,
  problems: ProblemList,
): readonly DocumentPath[] {
  const validate = validatorFor(options.schema);
  if (validate(value)) return [];
  const broken: DocumentPath[] = [];
  const errors = validate.errors ?? [];
  const mistyped = new Set(errors.filter(({ keyword }) => keyword === 'type').map(({ instancePath }) => instancePath));
  // Judged before any is added: what the syntax checks refused has no value that could satisfy a schema.
  const isRefused = (path: DocumentPath): boolean => problems.hasErrorIn(locate(tree, path).span);
  const found: (() => Finding)[] = [];
  for (const error of errors) {
    const path = pathOf(error.instancePath, tree);
    if (isNoise(error) || options.skip?.(path, error.keyword) === true) continue;
    if (error.keyword !== 'additionalProperties') broken.push(path);
    const isFollowUp = valueKeywords.has(error.keyword) ? mistyped.has(error.instancePath) : false;
    if (isFollowUp || (!keyKeywords.has(error.keyword) && isRefused(path))) continue;
    found.push(() => toFinding(error, path, tree, options));
  }
  for (const finding of found) problems.add(finding);
  return broken;
}

/** They also fail for a value of the wrong type, which is said already. */
const valueKeywords = new Set(['const', 'enum']);
/** What they report is a key that was read well, whatever else is wrong around it. */
const keyKeywords = new Set(['additionalProperties']);

/** The innermost node on `path` that exists. */
export function locate(tree: Located, path: DocumentPath): Located {
  let node = tree;
  for (const step of path) {
    const next = typeof step === 'number' ? node.items[step] : node.entries.get(step)?.node;
    if (next === undefined) return node;
    node = next;
  }
  return node;
}

/** Where the key of the last step stands; the value's place when that step is a list index or missing. */
export function locateKey(tree: Located, path: DocumentPath): Span {
  const last = path.at(-1);
  const parent = locate(tree, path.slice(0, -1));
  const entry = typeof last === 'string' ? parent.entries.get(last) : undefined;
  return entry?.key ?? locate(tree, path).span;
}

/** More do not fit an excerpt. */
const MAX_SHOWN_KEYS = 40;

/** What may be shown of a value: lists and mappings by their shape, so that nothing nested slips out. */
export function excerptOf(node: Located): string | null | undefined {
  if (node.kind === 'list') return `[${node.items.length} items]`;
  if (node.kind === 'map') return `{${[...node.entries.keys()].slice(0, MAX_SHOWN_KEYS).join(', ')}}`;
  return undefined;
}

const validators = new WeakMap<object, ValidateFunction>();

function validatorFor(schema: object): ValidateFunction {
  const known = validators.get(schema);
  if (known !== undefined) return known;
  const ajv = new Ajv2020({
    allErrors: true,
    strict: true,
    verbose: true,
    allowUnionTypes: true,
    addUsedSchema: false,
  });
  const validate = ajv.compile(schema);
  validators.set(schema, validate);
  return validate;
}

function pathOf(pointer: string, tree: Located): DocumentPath {
  const path: (string | number)[] = [];
  let node: Located | undefined = tree;
  for (const raw of pointer.split('/').slice(1)) {
    const name = raw.replaceAll('~1', '/').replaceAll('~0', '~');
    const isIndex: boolean = node?.kind === 'list';
    path.push(isIndex ? Number(name) : name);
    node = isIndex ? node?.items[Number(name)] : node?.entries.get(name)?.node;
  }
  return path;
}

/** Branches of a union all fail when the union fails; the union's own error says it once. */
function isNoise(error: ErrorObject): boolean {
  return (
    /\/(?:oneOf|anyOf)\/\d+\//.test(error.schemaPath) || error.keyword === 'if' || error.keyword === 'propertyNames'
  );
}

function toFinding(error: ErrorObject, path: DocumentPath, tree: Located, options: SchemaCheckOptions): Finding {
  const isWithheld = options.withhold?.(path) === true;
  const node = locate(tree, path);
  const excerpt = isWithheld ? null : excerptOf(node);
  const where = nameOf(path);
  const hint = hintOf(error);
  const common = { span: node.span, excerpt, ...(hint === undefined ? {} : { hint }) };
  switch (error.keyword) {
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return unknownKey(error, path, tree);
    case 'required':
    case 'dependentRequired': {
      const message = `${where} needs the key \`${text(error, 'missingProperty')}\``;
      return { ...common, code: 'MISSING_KEY', message };
    }
    case 'type':
      return wrongType(error, where, node, isWithheld);
    default:
      return { ...common, ...describe(error, where, node, isWithheld), ...options.rename?.(path, error.keyword) };
  }
}

function unknownKey(error: ErrorObject, path: DocumentPath, tree: Located): Finding {
  const key = text(error, 'additionalProperty') || text(error, 'unevaluatedProperty');
  const span = locateKey(tree, [...path, key]);
  const known = Object.keys(record(record(error.parentSchema).properties));
  const near = didYouMean(key, known);
  const hint = near === null ? `Known keys: ${known.join(', ')}.` : `Did you mean \`${near}\`?`;
  const message = `${nameOf(path)} has no key \`${clip(key)}\``;
  return { code: 'UNKNOWN_KEY', span, message, hint, excerpt: key };
}

function wrongType(error: ErrorObject, where: string, node: Located, isWithheld: boolean): Finding {
  const wanted = [record(error.parentSchema).type].flat().map((type) => typeWords[String(type)] ?? String(type));
  const message = `${where} must be ${wanted.join(' or ')}, not ${typeOf(node)}`;
  const isListWanted = wanted.includes('a list') && node.kind === 'scalar' && node.value !== null;
  const showsValue = isListWanted && !isWithheld;
  const hint = showsValue ? `Write it as a list: [${clip(String(node.value))}].` : hintOf(error);
  return { code: 'TYPE', span: node.span, message, hint, excerpt: isWithheld ? null : excerptOf(node) };
}

function describe(error: ErrorObject, where: string, node: Located, isWithheld: boolean): Omit<Finding, 'span'> {
  const limit = text(error, 'limit');
  switch (error.keyword) {
    case 'enum':
    case 'const':
      return wrongValue(error, where, node, isWithheld);
    case 'pattern':
      return { code: 'FORM', message: `${where} is not written as it must be` };
    case 'oneOf':
    case 'anyOf':
      return { code: 'FORM', message: `${where} has none of the forms it may have` };
    case 'minItems':
    case 'minProperties':
      return { code: 'EMPTY', message: `${where} must not be empty` };
    case 'minLength':
      return { code: 'EMPTY', message: `${where} must not be empty` };
    case 'maxItems':
    case 'maxLength':
    case 'maxProperties':
      return { code: 'TOO_LONG', message: `${where} is longer than ${limit}` };
    case 'minimum':
    case 'maximum':
      return {
        code: 'RANGE',
        message: `${where} must be ${error.keyword === 'minimum' ? 'at least' : 'at most'} ${limit}`,
      };
    case 'uniqueItems':
      return { code: 'DUPLICATE', message: `${where} holds the same value twice` };
    default:
      return { code: 'FORM', message: `${where} breaks the schema (${error.keyword})` };
  }
}

function wrongValue(error: ErrorObject, where: string, node: Located, isWithheld: boolean): Omit<Finding, 'span'> {
  const params = record(error.params);
  const allowed = (Array.isArray(params.allowedValues) ? params.allowedValues : [params.allowedValue]).map(String);
  const near = isWithheld || typeof node.value !== 'string' ? null : didYouMean(node.value, allowed);
  const hint = near === null ? undefined : `Did you mean \`${near}\`?`;
  return {
    code: 'VALUE',
    message: `${where} must be ${allowed.join(' or ')}`,
    ...(hint === undefined ? {} : { hint }),
  };
}

/** The schema's description of a place is its best explanation. */
function hintOf(error: ErrorObject): string | undefined {
  if (error.keyword === 'required' || error.keyword === 'dependentRequired') return undefined;
  const description = record(error.parentSchema).description;
  return typeof description === 'string' ? description : undefined;
}

const typeWords: Readonly<Record<string, string>> = {
  object: 'a mapping',
  array: 'a list',
  string: 'text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  null: 'nothing',
};

function typeOf(node: Located): string {
  if (node.kind === 'map') return 'a mapping';
  if (node.kind === 'list') return 'a list';
  if (node.value === null) return 'nothing';
  if (typeof node.value === 'boolean') return `\`${node.value}\``;
  if (typeof node.value !== 'number') return 'text';
  return Number.isInteger(node.value) ? 'a number' : 'a fraction';
}

function nameOf(path: DocumentPath): string {
  if (path.length === 0) return 'the document';
  return `\`${clip(
    path
      .map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
      .join('')
      .replace(/^\./, ''),
  )}\``;
}

function text(error: ErrorObject, name: string): string {
  const value = record(error.params)[name];
  return value === undefined ? '' : String(value);
}

function record(value: unknown): Record<string, unknown> {
  // Reading a missing property of a plain object gives undefined, which every caller handles.
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
