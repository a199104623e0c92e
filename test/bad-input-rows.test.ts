/** Holds the table of hostile input to the tests and vectors it names, both ways. */
import { basename } from 'node:path';
import test from 'ava';
import { parse } from 'yaml';
import { filesBelow, repositoryText, sourceFiles } from './kit/source-tree.ts';

interface Row {
  readonly row: string;
  readonly input: string;
  readonly answer: string;
  /** Names below test/gateway/bad-input. */
  readonly tests: readonly string[];
  readonly vectors: boolean;
}

// The file is ours, and each field of each row is looked at below.
const rows: readonly Row[] = parse(repositoryText('test/testdata/bad-input.yaml'));

/** What the gateway of this version has to answer: everything but DNS for callers, HTTP/2, WebSocket, SOCKS and passthrough. */
const required = [
  ...range('H', 1, 20),
  ...range('D', 1, 14),
  ...range('D', 17, 18),
  ...range('P', 1, 18),
  ...range('F', 1, 10),
  ...range('F', 18, 20),
  ...range('T', 1, 4),
  ...range('T', 6, 8),
  ...['C1', 'C3', 'C6', 'C7', 'C8', 'C11', 'C15', 'O1', 'O2', 'O4', 'O7', 'O8', 'S2'],
];

test('the table of hostile input has every row this version must answer, each once', (t) => {
  const names = rows.map(({ row }) => row);
  t.is(new Set(names).size, names.length);
  t.deepEqual(
    required.filter((row) => !names.includes(row)),
    [],
  );
  t.true(rows.every(({ input, answer, tests }) => input.length > 0 && answer.length > 0 && tests.length > 0));
});

test('the tests of the running gateway have titles for exactly the rows of the table', (t) => {
  const titled = sourceFiles(['test'])
    .filter(({ path }) => path.startsWith('test/gateway/bad-input/') && path.endsWith('.test.ts'))
    .flatMap(({ path, text }) => [...rowsOf(text)].map((row) => `${row} ${basename(path, '.test.ts')}`));
  t.deepEqual(titled.sort(), rows.flatMap(({ row, tests }) => tests.map((name) => `${row} ${name}`)).sort());
});

test('vectors.json has rows for exactly what is a pure question of name, address or path', (t) => {
  const vectors: readonly { readonly row: string }[] = JSON.parse(repositoryText('test/testdata/vectors.json'));
  const found = [...new Set(vectors.map(({ row }) => row))];
  t.deepEqual(
    found.sort(),
    rows
      .filter((row) => row.vectors)
      .map(({ row }) => row)
      .sort(),
  );
});

test('every test against the running gateway with hostile input uses raw sockets', (t) => {
  const raw = /bad-input\/stage\.ts|\.\/stage\.ts|kit\/raw-client\.ts|\.test\.ts';/;
  const files = filesBelow('test/gateway/bad-input', '.test.ts');
  t.deepEqual(
    files.filter((path) => !raw.test(repositoryText(path))),
    [],
  );
});

/** Rows that texts in quotes begin with, such as 'H7 two Host lines' or `T1 T2 nothing is sent`. */
function rowsOf(text: string): ReadonlySet<string> {
  const starts = [...text.matchAll(/['"`]((?:[HDPFTCOS]\d+ )+)/g)];
  return new Set(starts.flatMap(([, found = '']) => found.trim().split(' ')));
}

function range(letter: string, first: number, last: number): string[] {
  return Array.from({ length: last - first + 1 }, (_, nth) => `${letter}${first + nth}`);
}
