// Reads ava's report on stdin and prints "<passed> <failed> <skipped>".
// ava leaves out its "N tests passed" line as soon as one test fails, so passes are then counted by their ticks. A file that
// crashed, has no tests or left tests behind, an uncaught exception, an unhandled rejection and a timeout each count as a failure.
import { readFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';

const failureLines = [
  /^(\d+) tests? failed$/,
  /^(\d+) hooks? failed$/,
  /^(\d+) uncaught exceptions?$/,
  /^(\d+) unhandled rejections?$/,
  /^(\d+) tests? remained pending after a timeout$/,
];
const brokenFileLine =
  /^[✘×] (No tests found in |\d+ tests? remaining in |Internal error|Error in shared worker|Couldn’t find any |Based on your configuration|Exiting due to |.+ exited (due to |with a non-zero exit code: ))/;

const lines = stripVTControlCharacters(readFileSync(0, 'utf8')).split('\n');
const trimmed = lines.map((line) => line.trim());
const total = (patterns) => patterns.reduce((sum, pattern) => sum + lastNumber(pattern), 0);

const ticks = trimmed.filter((line) => /^[✔√] (?!\[expected fail\])/.test(line)).length;
const passed = lastNumber(/^(\d+) tests? passed$/) || ticks;
const failed = total(failureLines) + trimmed.filter((line) => brokenFileLine.test(line)).length;
process.stdout.write(`${passed} ${failed} ${lastNumber(/^(\d+) tests? skipped$/)}\n`);

function lastNumber(pattern) {
  const found = trimmed.findLast((line) => pattern.test(line));
  return found === undefined ? 0 : Number(pattern.exec(found)[1]);
}
