/** Properties of what the command line takes: whatever is typed, it says what is wrong and ends with 0, 1 or 2. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { command, temporaryFolder } from './command-line.ts';

const typed = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc
    .array(
      fc.oneof(
        fc.constantFrom(
          'GET ',
          'get',
          ' ',
          'https://',
          'http:/',
          'a.test',
          '[::1]',
          ':0',
          '/..',
          '%2f',
          '?q=1',
          '#',
          '@',
          '\u001b[2J',
        ),
        fc.constantFrom('-1', '0', '99999', '1:', '01J9ZK3V8M2Q4R6T8W0Y1A3B5C', 'f'.repeat(64), '--', '-', '='),
      ),
      { maxLength: 6 },
    )
    .map((parts) => parts.join('')),
);

/** `TYPED` is replaced, FILE and HOME too. */
const commands: Readonly<Record<string, readonly string[]>> = {
  'policy explain': ['policy', 'explain', 'FILE', 'TYPED'],
  'policy check of a file': ['policy', 'check', 'TYPED'],
  'audit tail -n': ['audit', 'tail', '--home', 'HOME', '-n', 'TYPED'],
  'audit tail --id': ['audit', 'tail', '--home', 'HOME', '--id', 'TYPED'],
  'audit verify --expect-head': ['audit', 'verify', '--home', 'HOME', '--expect-head', 'TYPED'],
  'vault show': ['vault', 'show', '--home', 'HOME', 'TYPED'],
  'a command': ['TYPED', '--help'],
};

for (const [name, words] of Object.entries(commands)) {
  test(`sallyport ${name} takes any text without a fault of its own`, async (t) => {
    const home = temporaryFolder(t);
    const file = join(home, 'p.yaml');
    writeFileSync(
      file,
      'version: 1\nname: p\nrules: [{ name: r, effect: allow, hosts: [a.test], paths: ["/a/**"] }]\n',
    );
    await fc.assert(
      fc.asyncProperty(typed, async (text) => {
        const args = words.map((word) => ({ TYPED: text, FILE: file, HOME: home })[word] ?? word);
        const { code, stdout, stderr } = await command(args);
        const isClean = !/[\x00-\x08\x0b-\x1f\x7f]/.test(stdout + stderr);
        return [0, 1, 2].includes(code ?? -1) && !stderr.includes('(internal)') && isClean;
      }),
      { numRuns: 60 },
    );
    t.pass();
  });
}
