#!/usr/bin/env node
/** The `sallyport` command. */
import process from 'node:process';
import { runCli } from './run-cli.ts';

// A reader that went away (`| head`) ends the program quietly, as it does for any filter.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 2));

process.exitCode = await runCli(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
});
