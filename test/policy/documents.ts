/** Policy documents for tests, with every field that does not matter filled in. */
import {
  type CompiledPolicy,
  type CredentialSpec,
  compile,
  type PolicyDocument,
  type Rule,
} from '../../policy/index.ts';

export function policyDocument(parts: Partial<PolicyDocument> = {}): PolicyDocument {
  return {
    version: 1,
    name: 'test',
    mode: 'enforce',
    allowPrivate: [],
    rules: [],
    credentials: [],
    tests: [],
    ...parts,
  };
}

/** An allow rule for https on 443 unless told otherwise. */
export function rule(parts: Partial<Rule> & Pick<Rule, 'name'>): Rule {
  return {
    effect: 'allow',
    protocol: 'http',
    scheme: 'https',
    hosts: [],
    cidrs: [],
    methods: [],
    paths: [],
    query: {},
    ports: [],
    encodedSlash: false,
    unsafeWide: false,
    tls: 'intercept',
    line: 1,
    ...parts,
  };
}

/** A bearer token for the Authorization header. */
export function credential(
  parts: Partial<Omit<CredentialSpec, 'bind'>> & {
    readonly name: string;
    readonly bind: Partial<CredentialSpec['bind']>;
  },
): CredentialSpec {
  return {
    secret: `vault:${parts.name}`,
    inject: { kind: 'header', header: 'authorization', format: 'Bearer {secret}' },
    allowCleartext: false,
    onClientCredential: 'deny',
    line: 1,
    ...parts,
    bind: { hosts: [], methods: [], paths: [], ports: [], ...parts.bind },
  };
}

export function policyOf(rules: readonly Rule[], parts: Partial<PolicyDocument> = {}): CompiledPolicy {
  return compile(policyDocument({ rules, ...parts }));
}
