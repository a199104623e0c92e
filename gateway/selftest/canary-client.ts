/** A hostile client in a few lines: raw bytes to the proxy, TLS with any server name, whatever comes back as text. */
import net from 'node:net';
import tls from 'node:tls';

/** One check, connections and handshakes included. */
const CHECK_TIMEOUT_MS = 10_000;

/** Enough of any answer to judge it. */
const MAX_ANSWER = 64 * 1024;

export interface CanaryCall {
  readonly proxy: { readonly host: string; readonly port: number };
  /** Proxy-Authorization line with CRLF, or empty. */
  readonly identity: string;
  /** CONNECT authority. */
  readonly authority: string;
  readonly serverName: string;
  readonly caPem: string;
  /** Sent inside TLS. */
  readonly request: string;
}

/** Text of the answer: the proxy's own when it refused CONNECT, else what came through TLS; `closed` when nothing did. */
export async function canaryCall(call: CanaryCall): Promise<string> {
  const socket = net.connect(call.proxy);
  const deadline = setTimeout(() => socket.destroy(), CHECK_TIMEOUT_MS);
  try {
    socket.write(`CONNECT ${call.authority} HTTP/1.1\r\nHost: ${call.authority}\r\n${call.identity}\r\n`);
    const answer = await readAnswer(socket);
    if (!answer.startsWith('HTTP/1.1 200 ')) return answer;
    const secure = tls.connect({ socket, servername: call.serverName, ca: call.caPem, ALPNProtocols: ['http/1.1'] });
    secure.write(call.request);
    return await readAnswer(secure);
  } finally {
    clearTimeout(deadline);
    socket.destroy();
  }
}

/** Reads until the head and its Content-Length are there, or the peer ends. */
function readAnswer(socket: net.Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const finish = () => {
      socket.off('data', onData).off('end', finish).off('close', finish);
      resolve(text === '' ? 'closed' : text);
    };
    const onData = (chunk: Buffer) => {
      text += chunk.toString('latin1');
      if (isWhole(text) || text.length > MAX_ANSWER) finish();
    };
    socket.on('data', onData).once('end', finish).once('close', finish);
    // The reason is not looked at: whatever ends the connection is "closed" to this client.
    socket.on('error', () => {});
  });
}

function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, end))?.[1];
  return length === undefined ? text.startsWith('HTTP/1.1 200 ') : text.length >= end + 4 + Number(length);
}
