/** The JSON Schema of policy documents, for the loader, editors and `policy schema`. */

/** A list longer than this is a mistake or an attack on whoever has to read it. */
export const MAX_LIST_ITEMS = 1000;
/** Compiled rules are kept in memory for every sandbox group; no reviewable policy comes near. */
export const MAX_RULES = 10_000;
export const MAX_CREDENTIALS = 500;
export const MAX_TESTS = 10_000;

/** A fresh copy of the JSON Schema (draft 2020-12) a policy document must satisfy; what it means is checked by `loadPolicy`. */
export function policySchema(): object {
  return structuredClone(policyDocumentSchema);
}

const name = {
  type: 'string',
  pattern: '^[a-z0-9-]{1,63}$',
  description: '1 to 63 lower-case letters, digits and hyphens.',
};

/** Shown to callers and written to audit: printable, line breaks are folded into spaces. */
const line = (description: string, maxLength: number) => ({
  type: 'string',
  minLength: 1,
  maxLength,
  pattern: '^[^\\u0000-\\u0009\\u000b-\\u001f\\u007f-\\u009f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff]*$',
  description,
});

const list = (items: object, description: string, extra: object = {}) => ({
  type: 'array',
  items,
  minItems: 1,
  maxItems: MAX_LIST_ITEMS,
  uniqueItems: true,
  description,
  ...extra,
});

const term = (maxLength: number) => ({ type: 'string', minLength: 1, maxLength });

const hosts = list(
  term(300),
  'Exact names, `*.x` for one or more labels below x, or `**` alone in deny rules. Names only; addresses go to `cidrs`.',
  { examples: [['api.github.com'], ['*.example.com']] },
);

const methods = list(
  term(64),
  'Upper-case methods or the presets `read` (GET, HEAD), `write` (POST, PUT, PATCH, DELETE), `any` (every registered method); `*` also takes unknown ones. GET implies HEAD, nothing implies OPTIONS.',
  { examples: [['GET'], ['read', 'POST']] },
);

const paths = list(
  term(2048),
  'Globs on the canonical path: `*` inside one segment, `**` for whole segments; `/x/**` includes `/x`. No braces, brackets or regular expressions.',
  { examples: [['/repos/acme/**'], ['/simple/*/']] },
);

const ports = list({ type: 'integer', minimum: 1, maximum: 65535 }, 'Ports; absent = the default port of the scheme.', {
  examples: [[443], [8443]],
});

const cidr = { type: 'string', minLength: 1, maxLength: 64 };

const ruleSchema = {
  type: 'object',
  description: 'One rule. Order never matters: deny beats allow, and what no rule allows is refused.',
  additionalProperties: false,
  required: ['name', 'effect'],
  properties: {
    name: { ...name, examples: ['github-read'] },
    effect: { type: 'string', enum: ['allow', 'deny'], description: 'What happens when the rule matches.' },
    reason: line('Why, shown to the refused caller and written to audit.', 500),
    protocol: { type: 'string', enum: ['http'], default: 'http', description: 'How the traffic is spoken.' },
    scheme: { type: 'string', enum: ['https', 'http'], default: 'https', description: '`http` is cleartext, port 80.' },
    hosts,
    cidrs: list(cidr, 'Addresses, the only way to name destinations without a name.', {
      examples: [['140.82.112.0/20']],
    }),
    methods,
    paths,
    query: {
      type: 'object',
      description: 'Query key to glob; every value of a repeated key must match.',
      additionalProperties: { type: 'string', maxLength: 1024 },
      minProperties: 1,
      maxProperties: 32,
      examples: [{ service: 'git-upload-pack' }],
    },
    ports,
    encodedSlash: {
      type: 'boolean',
      default: false,
      description: 'Takes `%2F` in paths; the decoded path must match too.',
    },
    unsafeWide: {
      type: 'boolean',
      default: false,
      description: 'Permits wildcards right above a public suffix, such as `*.com` or `*.github.io`.',
    },
    tls: { type: 'string', enum: ['intercept'], default: 'intercept', description: 'TLS is opened and judged inside.' },
  },
};

/** Every key a rule may have. */
export const ruleKeys: ReadonlySet<string> = new Set(Object.keys(ruleSchema.properties));

const credentialSchema = {
  type: 'object',
  description: 'A secret the gateway adds to requests; whoever sends them never sees it.',
  additionalProperties: false,
  required: ['name', 'secret', 'bind', 'inject'],
  properties: {
    name: { ...name, examples: ['github-token'] },
    secret: {
      type: 'string',
      maxLength: 512,
      pattern: '^(vault|env|file):',
      description: 'Where the value is: `vault:NAME`, `env:NAME` or `file:PATH`. Never the value itself.',
      examples: ['vault:github/acme-readonly', 'env:OPENAI_API_KEY', 'file:/etc/sallyport/token'],
    },
    bind: {
      type: 'object',
      description: 'The only requests that may carry it; must be covered by allow rules.',
      additionalProperties: false,
      required: ['hosts'],
      properties: { hosts, methods, paths, ports },
    },
    inject: {
      type: 'object',
      description: 'Either `header` with `format`, or `basic` with a user name.',
      additionalProperties: false,
      minProperties: 1,
      properties: {
        header: { ...term(128), description: 'The header that is set.', examples: ['Authorization', 'X-Api-Key'] },
        format: {
          ...term(512),
          default: '{secret}',
          description: 'The header value; holds `{secret}` exactly once.',
          examples: ['Bearer {secret}'],
        },
        basic: {
          type: 'object',
          description: 'HTTP Basic authentication with the secret as password.',
          additionalProperties: false,
          required: ['username'],
          properties: {
            username: {
              type: 'string',
              maxLength: 256,
              description: 'The user name; no colon.',
              examples: ['x-access-token'],
            },
          },
        },
      },
    },
    allowCleartext: { type: 'boolean', default: false, description: 'Lets the secret travel over plain http.' },
    onClientCredential: {
      type: 'string',
      enum: ['deny', 'replace', 'keep'],
      default: 'deny',
      description: "What happens to the client's own value in the same place.",
    },
  },
};

const testSchema = {
  type: 'object',
  description: 'A request and what must become of it; a failing test refuses the policy.',
  additionalProperties: false,
  required: ['request', 'expect'],
  properties: {
    request: {
      type: 'string',
      maxLength: 8192,
      pattern: '^[^ ]+ https?://[^ ]+$',
      description: 'METHOD and absolute URL, for example `GET https://api.github.com/repos/acme/site`.',
      examples: ['GET https://api.github.com/repos/acme/site'],
    },
    expect: { type: 'string', enum: ['allow', 'deny'], description: 'The verdict.' },
    rule: { ...name, description: 'The rule that must win.' },
    credential: { ...name, description: 'The credential that must be injected.' },
  },
};

const policyDocumentSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Sallyport policy, version 1',
  description: 'What a sandbox may reach, and with which credentials.',
  type: 'object',
  additionalProperties: false,
  required: ['version', 'name'],
  properties: {
    version: { type: 'integer', const: 1, description: 'The version of this format.' },
    name: { ...name, examples: ['coding-agent'] },
    description: line('What the policy is for.', 2000),
    owner: line('Who answers for it; written to audit.', 200),
    mode: { type: 'string', enum: ['enforce'], default: 'enforce', description: 'Verdicts are carried out.' },
    allowPrivate: list(cidr, 'Parts of RFC 1918, RFC 6598 or RFC 4193 space this policy opens.', {
      examples: [['10.20.0.0/16']],
    }),
    rules: {
      type: 'array',
      items: ruleSchema,
      maxItems: MAX_RULES,
      description: 'Without rules everything is refused.',
    },
    credentials: {
      type: 'array',
      items: credentialSchema,
      maxItems: MAX_CREDENTIALS,
      description: 'Secrets to inject.',
    },
    tests: { type: 'array', items: testSchema, maxItems: MAX_TESTS, description: 'Run at every load.' },
  },
};

/** The loader's own copy: never handed out, so nobody can loosen it and it is compiled once. */
export const internalPolicySchema: object = policyDocumentSchema;
