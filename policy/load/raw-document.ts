/** The shapes of a document that satisfies the schema, before its meaning is checked. */

export interface RawDocument {
  readonly version: 1;
  readonly name: string;
  readonly description?: string;
  readonly owner?: string;
  readonly allowPrivate?: readonly string[];
  readonly rules?: readonly RawRule[];
  readonly credentials?: readonly RawCredential[];
  readonly tests?: readonly RawTest[];
}

export interface RawRule {
  readonly name: string;
  readonly effect: 'allow' | 'deny';
  readonly reason?: string;
  readonly scheme?: 'https' | 'http';
  readonly hosts?: readonly string[];
  readonly cidrs?: readonly string[];
  readonly methods?: readonly string[];
  readonly paths?: readonly string[];
  readonly query?: Readonly<Record<string, string>>;
  readonly ports?: readonly number[];
  readonly encodedSlash?: boolean;
  readonly unsafeWide?: boolean;
}

export interface RawCredential {
  readonly name: string;
  readonly secret: string;
  readonly bind: RawBind;
  readonly inject: RawInject;
  readonly allowCleartext?: boolean;
  readonly onClientCredential?: 'deny' | 'replace' | 'keep';
}

export interface RawBind {
  readonly hosts: readonly string[];
  readonly methods?: readonly string[];
  readonly paths?: readonly string[];
  readonly ports?: readonly number[];
}

export interface RawInject {
  readonly header?: string;
  readonly format?: string;
  readonly basic?: { readonly username: string };
}

export interface RawTest {
  readonly request: string;
  readonly expect: 'allow' | 'deny';
  readonly rule?: string;
  readonly credential?: string;
}
