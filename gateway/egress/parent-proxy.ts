/** CONNECT through a corporate proxy (RFC 9110 §9.3.6): the address asked for is the vetted one, so the parent decides nothing by name. */
import net from 'node:net';
import { FAILED, INCOMPLETE } from './http/header-block.ts';
import { ResponseHead } from './http/response-head.ts';

/** A parent's answer to CONNECT is short; more is not an answer. */
const MAX_ANSWER = 8 * 1024;

/** @throws Error when the parent refuses, answers nonsense, or `abort` fires; the socket is then destroyed. */
export function openTunnel(
  parent: { host: string; port: number },
  authority: string,
  abort: AbortSignal,
): Promise<net.Socket> {
  const socket = net.connect({ host: parent.host, port: parent.port, noDelay: true });
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0);
    const finish = (error: Error | null) => {
      socket.off('data', onData).off('error', finish).off('close', onClose);
      abort.removeEventListener('abort', onAbort);
      socket.pause();
      if (error === null) return resolve(socket);
      socket.on('error', () => {}); // given up already
      socket.destroy();
      reject(error);
    };
    const onClose = () => finish(new Error('the parent proxy closed the connection'));
    const onAbort = () => finish(new Error('deadline passed'));
    const onData = (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      const head = new ResponseHead();
      const end = head.parse(received, 0, received.length);
      if (end === INCOMPLETE && received.length <= MAX_ANSWER) return;
      if (end === INCOMPLETE || end === FAILED) return finish(new Error('the parent proxy did not answer in HTTP'));
      if (head.status < 200 || head.status > 299) return finish(new Error(`the parent proxy answered ${head.status}`));
      // A server that speaks first is no TLS or HTTP server; bytes behind the answer would be lost, so they end the attempt.
      if (end !== received.length) return finish(new Error('the parent proxy sent bytes nobody asked for'));
      finish(null);
    };
    socket.on('data', onData).once('error', finish).once('close', onClose);
    abort.addEventListener('abort', onAbort, { once: true });
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  });
}
