#!/usr/bin/env node
/** The `sallyport` command. */
import process from 'node:process';
import { runCli } from './run-cli.ts';

// A reader that went away (`| head`) stops what would go on, in order; what ends by itself ends without output.
process.stdout.on('error', () => process.emit('SIGTERM', 'SIGTERM'));

process.exitCode = await runCli(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
});
