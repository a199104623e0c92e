import test from 'ava';
import fc from 'fast-check';
import { formatProblems, MAX_POLICY_BYTES, readStrictYaml } from '../../../policy/index.ts';

const schema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    listen: { type: 'array', items: { type: 'string' }, minItems: 1, description: 'Addresses to listen on.' },
    passphrase: { type: 'string', maxLength: 8 },
    mode: { enum: ['on', 'off'] },
    limits: { type: 'object', additionalProperties: { type: 'integer', minimum: 0 } },
  },
};

const read = (source: string | Uint8Array, options: { maxBytes?: number; withhold?: boolean } = {}) =>
  readStrictYaml(source, {
    file: 'sallyport.yaml',
    schema,
    codePrefix: 'CONFIG',
    ...(options.maxBytes === undefined ? {} : { maxBytes: options.maxBytes }),
    ...(options.withhold === true ? { withhold: (path) => path[0] === 'passphrase' } : {}),
  });

const codes = (source: string | Uint8Array, options = {}) => {
  const result = read(source, options);
  return result.ok ? [] : result.problems.map(({ code, line, column }) => `${code} ${line}:${column}`);
};

test('readStrictYaml() gives plain data and the place of each value', (t) => {
  const result = read('listen:\n  - 127.0.0.1:3128\n  - "[::1]:3128"\nmode: on\nlimits: { queue: 10 }\n');
  if (!result.ok) return t.fail(formatProblems(result.problems));
  t.deepEqual(result.value, { listen: ['127.0.0.1:3128', '[::1]:3128'], mode: 'on', limits: { queue: 10 } });
  t.deepEqual(result.position(['listen', 1]), { line: 3, column: 5 });
  t.deepEqual(result.position(['limits', 'queue']), { line: 5, column: 18 });
  t.deepEqual(result.position(['limits', 'queue'], 'key'), { line: 5, column: 11 });
  t.deepEqual(result.position(['limits', 'absent']), { line: 5, column: 9 });
  t.deepEqual(result.position([]), { line: 1, column: 1 });
});

test('readStrictYaml() reads JSON, DOS line ends and bytes', (t) => {
  t.deepEqual(codes('{"mode": "on", "limits": {"a": 1}}'), []);
  t.deepEqual(codes('mode: on\r\nlimits:\r\n  a: 1\r\n'), []);
  t.deepEqual(codes(new TextEncoder().encode('mode: off\n')), []);
  t.deepEqual(codes('---\nmode: off\n...\n'), []);
});

test('readStrictYaml() keeps what YAML 1.1 would turn into something else', (t) => {
  const result = readStrictYaml('a: no\nb: 12:30:45\nc: 2001-01-01\nd: 1_000\ne: 0x1g\n', { file: 'f', schema: {} });
  if (!result.ok) return t.fail(formatProblems(result.problems));
  t.deepEqual(result.value, { a: 'no', b: '12:30:45', c: '2001-01-01', d: '1_000', e: '0x1g' });
});

test('readStrictYaml() expands a few aliases', (t) => {
  const result = readStrictYaml('a: &x [1, 2]\nb: *x\nc: [*x]\n', { file: 'f', schema: {} });
  if (!result.ok) return t.fail(formatProblems(result.problems));
  t.deepEqual(result.value, { a: [1, 2], b: [1, 2], c: [[1, 2]] });
});

test('readStrictYaml() uses the prefix of its caller and reports everything at once', (t) => {
  t.deepEqual(codes('listn: [a]\nmode: of\nmode: on\nlimits: { a: -1, b: x }\n'), [
    'CONFIG_UNKNOWN_KEY 1:1',
    'CONFIG_VALUE 2:7',
    'CONFIG_DUPLICATE_KEY 3:1',
    'CONFIG_RANGE 4:14',
    'CONFIG_TYPE 4:21',
  ]);
});

test('readStrictYaml() says where bytes are not UTF-8', (t) => {
  t.deepEqual(codes(Uint8Array.of(0x61, 0x0a, 0x62, 0xff, 0x0a, 0xc3, 0x28)), [
    'CONFIG_ENCODING 2:2',
    'CONFIG_ENCODING 3:1',
  ]);
  t.deepEqual(codes(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61)), ['CONFIG_BOM 1:1']);
  t.deepEqual(codes('a\ud800b'), ['CONFIG_ENCODING 1:2']);
});

test('readStrictYaml() refuses one byte more than its limit, counted in UTF-8', (t) => {
  t.deepEqual(codes('mode: on', { maxBytes: 8 }), []);
  t.deepEqual(codes('mode: on', { maxBytes: 7 }), ['CONFIG_TOO_LARGE 1:1']);
  t.deepEqual(codes('"é": 1', { maxBytes: 6 }), ['CONFIG_TOO_LARGE 1:1']);
  t.deepEqual(codes(new Uint8Array(MAX_POLICY_BYTES + 1)), ['CONFIG_TOO_LARGE 1:1']);
});

/** Each of these cost seconds, gigabytes or the stack in a parser without a guard. */
const floods: readonly (readonly [name: string, text: string, code: string])[] = [
  ['brackets', '['.repeat(500_000), 'CONFIG_TOO_DEEP'],
  ['dashes', '- '.repeat(400_000), 'CONFIG_TOO_DEEP'],
  ['question marks', '? '.repeat(400_000), 'CONFIG_TOO_DEEP'],
  ['indentation', Array.from({ length: 1_000 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n'), 'CONFIG_TOO_DEEP'],
  ['commas', `[${','.repeat(490_000)}`, 'CONFIG_SYNTAX'],
  ['quotes', '"'.repeat(900_000), 'CONFIG_SYNTAX'],
  ['tags', '!a '.repeat(300_000), 'CONFIG_SYNTAX'],
  ['aliases', '- *a\n'.repeat(200_000), 'CONFIG_TOO_MANY_ALIASES'],
  ['anchors', '&a '.repeat(200_000), 'CONFIG_TOO_MANY_ALIASES'],
  ['items', '- a\n'.repeat(250_000), 'CONFIG_TOO_LARGE'],
  ['directives', '%A b\n'.repeat(200_000), 'CONFIG_DIRECTIVE'],
  ['tabs', '\t'.repeat(1_000_000), 'CONFIG_TAB'],
];

for (const [name, text, code] of floods) {
  test(`readStrictYaml() refuses a flood of ${name} at once`, (t) => {
    const result = read(text);
    t.is(result.ok ? '' : result.problems[0]?.code, code);
    t.true(result.ok || result.problems.length <= 201);
  });
}

test('readStrictYaml() refuses aliases that multiply', (t) => {
  const list = (name: string) => `[${Array.from({ length: 4 }, () => `*${name}`).join(', ')}]`;
  const items = Array.from({ length: 3000 }, () => 'x').join(', ');
  const text = `a: &a [${items}]\nb: &b ${list('a')}\nc: &c ${list('b')}\nd: &d ${list('c')}\ne: ${list('d')}\n`;
  t.deepEqual(
    codes(text).map((code) => code.replace(/ .*/, '')),
    ['CONFIG_TOO_LARGE'],
  );
});

test('readStrictYaml() shows the first two hundred problems and counts the rest', (t) => {
  const text = Array.from({ length: 300 }, (_, index) => `key${index}: 1\n`).join('');
  const result = read(text);
  if (result.ok) return t.fail('accepted');
  t.is(result.problems.length, 201);
  t.like(result.problems.at(-1), { code: 'CONFIG_TOO_MANY_PROBLEMS', message: '100 further problems are not shown' });
});

test('readStrictYaml() quotes no value it was told to withhold, and none of a broken line that may be a secret', (t) => {
  for (const text of ['passphrase: correct-horse', 'passphrase: [correct-horse]', 'passphrase: { correct-horse: 1 }']) {
    const result = read(text, { withhold: true });
    t.false(result.ok || JSON.stringify(result.problems).includes('correct'), text);
  }
  for (const text of [
    'passphrase: "correct-horse',
    'passphrase: correct: horse',
    'token: *correct',
    '- correct0horse1battery2: [\n',
  ]) {
    const result = read(text);
    t.false(result.ok || JSON.stringify(result.problems).includes('correct'), text);
  }
});

test('readStrictYaml() never throws on text, bytes or JSON', (t) => {
  const yamlish = fc.string({
    unit: fc.constantFrom(
      'a',
      ':',
      ' ',
      '\n',
      '-',
      '[',
      ']',
      '{',
      '}',
      ',',
      '"',
      "'",
      '&',
      '*',
      '!',
      '|',
      '>',
      '#',
      '%',
      '?',
      '<',
      '0',
      '~',
    ),
    maxLength: 60,
  });
  const source = fc.oneof(
    yamlish,
    fc.string({ unit: 'binary', maxLength: 80 }),
    fc.uint8Array({ maxLength: 80 }),
    fc.json(),
  );
  fc.assert(
    fc.property(source, (text) => {
      const result = read(text);
      if (result.ok) return;
      t.true(result.problems.length > 0);
      for (const problem of result.problems)
        t.true(problem.line >= 1 && problem.column >= 1 && /^CONFIG_[A-Z_]+$/.test(problem.code));
    }),
    { numRuns: 800 },
  );
  t.pass();
});

test('readStrictYaml() reads every JSON document as JSON does', (t) => {
  const plain = fc
    .jsonValue({ maxDepth: 6 })
    .filter((value) => !/__proto__|constructor|prototype|<</.test(JSON.stringify(value)));
  fc.assert(
    fc.property(plain, (value) => {
      // The characters the reader refuses anywhere have escapes in JSON.
      const text = JSON.stringify(value).replace(
        /[^ -~]/g,
        (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
      );
      const result = readStrictYaml(text, { file: 'f', schema: {} });
      if (!result.ok) return t.fail(`${text}\n${formatProblems(result.problems)}`);
      t.deepEqual(result.value, JSON.parse(text));
    }),
    { numRuns: 150 },
  );
});
