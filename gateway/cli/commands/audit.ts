/** `audit`: follow the log, prove that it is whole, print its schema. Needs read access to the files, no gateway. */
import { readFileSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  auditRecordSchema,
  isUlid,
  parseHead,
  type StoredRecord,
  tailAudit,
  type VerifyOptions,
  type VerifyReport,
  verifyAudit,
} from '../../audit/index.ts';
import { type Cli, type ExitCode, FINDINGS, GOOD, UsageError } from '../cli.ts';
import { type ConfigOptions, readConfig, withConfigOptions, withExamples, withJson } from '../configuration.ts';
import { plainText } from '../plain-text.ts';
import { recordText } from '../record-text.ts';

interface JsonOption {
  readonly json?: boolean;
}

export function addAudit(program: Command, cli: Cli): void {
  const audit = program.command('audit').description('follow and verify the audit log');
  withExamples(audit, 'sallyport audit tail --follow', 'sallyport audit verify');
  addTail(audit, cli);
  addVerify(audit, cli);
  addSchema(audit, cli);
}

interface TailFlags extends ConfigOptions, JsonOption {
  readonly follow?: boolean;
  readonly lines: number;
  readonly verdict?: string;
  readonly kind?: string;
  readonly id?: string;
}

function addTail(audit: Command, cli: Cli): void {
  const command = audit
    .command('tail')
    .description('show the newest records; with --json one object a line, exactly as stored')
    .option('-f, --follow', 'go on with new records')
    .addOption(new Option('-n, --lines <count>', 'how many').argParser(countOf).default(10))
    .addOption(
      new Option('--verdict <verdict>', 'only these').choices(['allow', 'deny', 'ask', 'observe-deny', 'error']),
    )
    .option('--kind <kind>', 'only records of this kind, such as http.request')
    .addOption(
      new Option('--id <request-id>', 'only the record of this refusal, in the whole log (exit 1: there is none)')
        .argParser(requestIdOf)
        .conflicts('follow'),
    )
    .action(cli.action((options: TailFlags) => tail(cli, options)));
  withExamples(
    withJson(withConfigOptions(command)),
    'sallyport audit tail --follow --verdict deny',
    'sallyport audit tail --id 01J9ZK3V8M2Q4R6T8W0Y1A3B5C',
    'sallyport audit tail -n 100 --json | jq \'select(.rule == "no-deletes")\'',
  );
}

async function tail(cli: Cli, options: TailFlags): Promise<ExitCode> {
  const { dir } = readConfig(cli, options).audit;
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  const records = tailAudit({
    dir,
    follow: options.follow === true,
    // An id names one record: the first one found ends the search.
    lines: options.id === undefined ? options.lines : 1,
    signal: stop.signal,
    filter: isWanted(options),
  });
  let count = 0;
  for await (const record of records) {
    count += 1;
    cli.out(options.json === true ? JSON.stringify(record) : recordText(record));
  }
  process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  if (options.id === undefined || count > 0) return GOOD;
  cli.note(`sallyport: no record in ${plainText(dir)} has the id ${options.id}`);
  return FINDINGS;
}

function isWanted({ verdict, kind, id }: TailFlags): (record: StoredRecord) => boolean {
  return (record) =>
    (verdict === undefined || record.verdict === verdict) &&
    (kind === undefined || record.kind === kind) &&
    (id === undefined || record.id === id);
}

interface VerifyFlags extends ConfigOptions, JsonOption {
  readonly key?: string;
  readonly expectHead?: { readonly seq: number; readonly hash: string };
}

function addVerify(audit: Command, cli: Cli): void {
  const command = audit
    .command('verify')
    .description('prove that no record was changed, dropped or added; names the first bad one (exit 1)')
    .argument('[files...]', 'log files (default: the audit folder of the configuration)')
    .option('--key <file>', 'PEM file of trusted public keys, kept away from the log')
    .addOption(
      new Option('--expect-head <seq:hash>', 'a head known from elsewhere: shows a cut-off end').argParser(headOf),
    )
    .action(
      cli.action(async (files: string[], options: VerifyFlags) => {
        const source = files.length > 0 ? { files } : { dir: readConfig(cli, options).audit.dir };
        const report = await verifyAudit({ source, ...trusted(options) });
        if (options.json === true) cli.json(report);
        else cli.out(reportText(report));
        return report.ok ? GOOD : FINDINGS;
      }),
    );
  withExamples(
    withJson(withConfigOptions(command)),
    'sallyport audit verify',
    'sallyport audit verify --key /etc/sallyport/audit.pub --json audit-*.jsonl',
  );
}

function addSchema(audit: Command, cli: Cli): void {
  const command = audit
    .command('schema')
    .description('print the JSON Schema of a record')
    .action(
      cli.action(() => {
        cli.json(auditRecordSchema());
        return GOOD;
      }),
    );
  withExamples(withJson(command), 'sallyport audit schema > audit.schema.json');
}

function trusted(options: VerifyFlags): Pick<VerifyOptions, 'publicKeyPem' | 'expectHead'> {
  return {
    ...(options.key === undefined ? {} : { publicKeyPem: readKey(options.key) }),
    ...(options.expectHead === undefined ? {} : { expectHead: options.expectHead }),
  };
}

function readKey(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const state = cause instanceof Error && 'code' in cause ? String(cause.code) : 'it could not be read';
    throw new UsageError(`Cannot read the key ${file}: ${state}`);
  }
}

function reportText(report: VerifyReport): string {
  const { firstBad, head } = report;
  const signed = report.signedUpTo === null ? 'nothing' : `up to record ${report.signedUpTo}`;
  const lines = [
    `records    ${report.records} in ${report.files} files, from ${report.firstSeq ?? 'none'}`,
    `signed     ${signed}, ${report.checkpoints} checkpoints; ${report.unsignedTail} records behind the last one`,
    `keys       ${keysText[report.keys]}`,
    `head       ${head === null ? 'none' : `${head.seq}:${head.hash}`}`,
    ...report.gaps.map(
      (gap) => `gap        record ${gap.seq}, ${gap.time}: ${gap.reason}${lossText(gap.dropped, gap.atMost)}`,
    ),
    ...(report.tornBytes > 0 ? [`torn       ${report.tornBytes} bytes at the end are no whole record`] : []),
  ];
  if (firstBad !== null) {
    const record = firstBad.seq === null ? '' : ` (record ${firstBad.seq})`;
    lines.push(`FIRST BAD  ${firstBad.file} line ${firstBad.line}${record}: ${firstBad.why}`);
  }
  return [...lines, report.ok ? 'the log is whole' : 'THE LOG IS NOT WHOLE'].join('\n');
}

const keysText: Readonly<Record<VerifyReport['keys'], string>> = {
  trusted: 'given with --key',
  beside: 'audit.pub beside the log: who changed the log may have changed it too; give --key',
  none: 'none: no signature was checked',
};

function lossText(dropped: number | null, atMost: number | null): string {
  if (dropped !== null) return `, ${dropped} records lost`;
  return atMost === null ? '' : `, at most ${atMost} records lost`;
}

function countOf(text: string): number {
  const count = Number(text);
  if (/^\d{1,5}$/.test(text) && count <= 10_000) return count;
  throw new InvalidArgumentError('expected a number from 0 to 10000');
}

function requestIdOf(text: string): string {
  const id = text.toUpperCase();
  if (isUlid(id)) return id;
  throw new InvalidArgumentError('expected the requestId of a refusal, 26 letters and digits');
}

function headOf(text: string): { seq: number; hash: string } {
  const head = parseHead(text);
  if (head === null) throw new InvalidArgumentError('expected SEQ:HASH as `audit verify` prints it');
  return head;
}
