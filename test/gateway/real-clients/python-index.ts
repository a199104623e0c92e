/** A small Python package index (PEP 503) and wheels built by hand. */
import { createHash } from 'node:crypto';
import type { TestCertificate } from '../../kit/certificates.ts';
import { type LocalServer, send, startServer } from './https-server.ts';

export interface IndexFile {
  /** Normalised project name (PEP 503). */
  readonly project: string;
  readonly url: string;
  readonly bytes: Buffer;
}

/** Serves `/simple/…` pages and the files at the path of their URL. */
export function startIndex(certificate: TestCertificate, files: readonly IndexFile[]): Promise<LocalServer> {
  return startServer(certificate, (request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? '';
    const page = files.filter((one) => path === `/simple/${one.project}/`);
    if (page.length > 0) return send(response, 'text/html', page.map(anchor).join('\n'));
    const file = files.find((one) => new URL(one.url).pathname === path);
    if (file !== undefined) return send(response, 'application/octet-stream', file.bytes);
    return send(response, 'text/plain', 'not found', 404);
  });
}

/** A wheel with one module of one line (PEP 427). */
export function buildWheel(name: string, version: string): Buffer {
  const info = `${name}-${version}.dist-info`;
  const files: [string, string][] = [
    [`${name}.py`, 'VALUE = 1\n'],
    [`${info}/METADATA`, `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`],
    [`${info}/WHEEL`, 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n'],
  ];
  const record = `${info}/RECORD`;
  const lines = files.map(([path, text]) => {
    const digest = createHash('sha256').update(text).digest('base64url');
    return `${path},sha256=${digest},${Buffer.byteLength(text)}`;
  });
  return zip([...files, [record, `${[...lines, `${record},,`].join('\n')}\n`]]);
}

function anchor(file: IndexFile): string {
  const name = new URL(file.url).pathname.split('/').at(-1);
  const digest = createHash('sha256').update(file.bytes).digest('hex');
  return `<a href="${file.url}#sha256=${digest}">${name}</a><br>`;
}

/** A zip archive without compression (APPNOTE 4.3). */
function zip(files: readonly (readonly [string, string])[]): Buffer {
  const locals: Buffer[] = [];
  const centrals: Buffer[] = [];
  let offset = 0;
  for (const [path, text] of files) {
    const name = Buffer.from(path);
    const data = Buffer.from(text);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    // 1 January 1980, the first day the format can name.
    common.writeUInt16LE(0x21, 8);
    common.writeUInt32LE(crc32(data), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(data.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, name, data]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    centrals.push(Buffer.concat([Buffer.from('PK\x01\x02'), Buffer.of(20, 0), common, tail, name]));
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(centrals);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(files.length, 8);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, directory, end]);
}

function crc32(bytes: Buffer): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return (crc ^ 0xffffffff) >>> 0;
}
