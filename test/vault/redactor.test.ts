import test from 'ava';
import fc from 'fast-check';
import { createPlaceholders, createRedactor, MAX_REDACTED_QUERY_BYTES } from '../../vault/index.ts';
import { MAX_REDACTED_VALUES, MAX_VALUES_PER_NAME, MIN_REDACTED_BYTES } from '../../vault/redactor.ts';
import { codeOf } from './fixture.ts';

const value = 'p/s+w?r"d\\ ä';
const forms: readonly [name: string, text: string][] = [
  ['itself', value],
  ['base64', Buffer.from(value).toString('base64')],
  ['base64 without padding', Buffer.from(value).toString('base64').replace(/=+$/, '')],
  ['base64url', Buffer.from(value).toString('base64url')],
  ['percent-encoded', encodeURIComponent(value)],
  ['percent-encoded in lower case', encodeURIComponent(value).replace(/%../g, (hex) => hex.toLowerCase())],
  ['form-encoded', new URLSearchParams([[value, '']]).toString().slice(0, -1)],
  ['JSON-escaped', JSON.stringify(value).slice(1, -1)],
  ['JSON-escaped with slashes', JSON.stringify(value).slice(1, -1).replaceAll('/', '\\/')],
  ['read as latin1', Buffer.from(value).toString('latin1')],
];

for (const [name, text] of forms) {
  test(`redact() finds a value that is ${name}`, (t) => {
    const redactor = createRedactor();
    redactor.add('key', value);
    t.is(redactor.redact(`a ${text}, b ${text}`), 'a [redacted:key], b [redacted:key]');
    t.is(redactor.redact(`a ${text.slice(1)}`), `a ${text.slice(1)}`);
  });
}

test('redact() finds a value inside the base64 of a longer text at every alignment', (t) => {
  const redactor = createRedactor();
  redactor.add('key', 'correct-horse-battery');
  for (const before of ['', 'a', 'ab', 'abc', 'user:', 'user4:']) {
    const text = Buffer.from(`${before}correct-horse-battery:tail`).toString('base64');
    t.true(redactor.redact(text).includes('[redacted:key]'), before);
  }
});

test('redact() takes the longest value where several fit', (t) => {
  const redactor = createRedactor();
  redactor.add('short', 'secret');
  redactor.add('long', 'secret-long');
  t.is(redactor.redact('secret-long secret-lon'), '[redacted:long] [redacted:short]-lon');
});

test('redact() gives back a text that holds nothing', (t) => {
  const redactor = createRedactor();
  t.is(redactor.redact('nothing'), 'nothing');
  redactor.add('key', 'secret');
  for (const text of ['', 's', 'secre', 'nothing']) t.is(redactor.redact(text), text);
});

test('redact() leaves values alone that are too short to be secrets', (t) => {
  const redactor = createRedactor();
  redactor.add('key', 'x'.repeat(MIN_REDACTED_BYTES - 1));
  t.is(redactor.redact('xxxx'), 'xxxx');
  redactor.add('key', 'x'.repeat(MIN_REDACTED_BYTES));
  t.is(redactor.redact('xxxx'), '[redacted:key]');
});

test('add() keeps the newest values of a name up to the bound', (t) => {
  const redactor = createRedactor();
  for (let at = 0; at <= MAX_VALUES_PER_NAME; at += 1) redactor.add('key', `value-${at}-end`);
  t.is(redactor.redact('value-0-end'), 'value-0-end');
  t.is(redactor.redact('value-1-end'), '[redacted:key]');
  redactor.add('key', 'value-1-end');
  redactor.add('key', 'another');
  t.is(redactor.redact('value-1-end value-2-end'), '[redacted:key] value-2-end');
});

test('add() refuses one value more than it can hold and forgets none for it', async (t) => {
  const redactor = createRedactor();
  for (let at = 0; at < MAX_REDACTED_VALUES; at += 1) redactor.add(`key-${at}`, `value-${at}-end`);
  t.is(await codeOf(() => redactor.add('more', 'one-more-value')), 'VAULT_REDACTOR_FULL');
  t.is(redactor.redact('value-0-end'), '[redacted:key-0]');
  redactor.close();
  redactor.close();
  t.is(redactor.redact('value-0-end'), 'value-0-end');
});

test('redact() leaves no form of any value behind', (t) => {
  const values = fc.array(fc.string({ unit: 'grapheme-ascii', minLength: 6, maxLength: 24 }), {
    minLength: 1,
    maxLength: 4,
  });
  fc.assert(
    fc.property(values, fc.string({ maxLength: 30 }), (known, around) => {
      const redactor = createRedactor();
      for (const [at, one] of known.entries()) redactor.add(`\u0000${at}`, one);
      const text = known.map(
        (one) => `${around}\n${one}\n${encodeURIComponent(one)}\n${Buffer.from(one).toString('base64')}`,
      );
      const result = redactor.redact(text.join('\n'));
      // A name could contain a value by chance; the replacement is therefore taken out first.
      const rest = result.replaceAll(/\[redacted:\u0000[0-9]\]/g, '\u0001');
      return known.every((one) => !rest.includes(one) && !rest.includes(Buffer.from(one).toString('base64')));
    }),
    { numRuns: 200 },
  );
  t.pass();
});

const placeholder = createPlaceholders(Buffer.alloc(32, 1)).issue('sandbox', 'token');
const queries: readonly [query: string, redacted: string][] = [
  ['', ''],
  ['a=1&b=2', 'a=*&b=*'],
  ['a', 'a'],
  ['a=', 'a=*'],
  ['=1', '=*'],
  ['a=1=2', 'a=*'],
  ['a=1&a=2', 'a=*&a=*'],
  ['&&', '&&'],
  ['a=1;b=2', 'a=*'],
  ['hunter2-key=1', '[redacted]=*'],
  ['x-hunter2-key', '[redacted]'],
  ['%68unter2-key=1', '[redacted]=*'],
  [`${placeholder}=1`, '[redacted]=*'],
  [placeholder.toUpperCase(), '[redacted]'],
  [`%73ptph_=1`, '[redacted]=*'],
  [`${'k'.repeat(65)}=1`, '[redacted]=*'],
  ['%zz=1', '%zz=*'],
];

for (const [query, redacted] of queries) {
  test(`redactQuery() makes ${JSON.stringify(redacted)} of ${JSON.stringify(query.slice(0, 30))}`, (t) => {
    const redactor = createRedactor();
    redactor.add('key', 'hunter2-key');
    t.is(redactor.redactQuery(query), redacted);
  });
}

test('redactQuery() is bounded and never lets a value through', (t) => {
  const redactor = createRedactor();
  const pair = fc
    .tuple(fc.string({ maxLength: 80 }), fc.stringMatching(/^VALUE[0-9]{9}$/))
    .map(([key, text]) => `${key.replaceAll(/[=&]/g, '')}=${text}`);
  fc.assert(
    fc.property(fc.array(pair, { maxLength: 200 }), (pairs) => {
      const result = redactor.redactQuery(pairs.join('&'));
      return Buffer.byteLength(result) <= MAX_REDACTED_QUERY_BYTES && !/VALUE[0-9]{9}/.test(result);
    }),
    { numRuns: 100 },
  );
  t.true(Buffer.byteLength(redactor.redactQuery('k=v&'.repeat(10_000))) <= MAX_REDACTED_QUERY_BYTES);
});
