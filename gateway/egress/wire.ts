/**
 * A socket as the data path wants it: bytes are handed to one reader at once, without the queue of a Readable.
 *
 * `push` is replaced on the instance, so net's read callback reaches the reader directly (measured: a sixth of the CPU of a
 * proxied request). That leans on net calling `push`; `plain` uses 'data' events instead, and the tests run both.
 */
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

export interface WireReader {
  /** Takes a run of bytes; false = stop reading until `resume()`. The memory may be reused after the call when `shared`. */
  onBytes(buf: Buffer, length: number): boolean;
  /** The peer sent its end. */
  onEnd(): void;
  /** What was written has left; writing may go on. */
  onDrain(): void;
  /** The socket is gone; called once. */
  onClose(error: Error | null): void;
}

/** The reader of a wire that was just made; its owner takes the place in the same turn of the event loop. */
export const UNREAD: WireReader = {
  onBytes: () => false,
  onEnd: () => {},
  onDrain: () => {},
  onClose: () => {},
};

/** The door through which bytes read into a shared buffer reach whoever reads now. */
export interface ReadSink {
  /** Bytes came before anybody read: they are lost, so the connection is not used. */
  isEarly: boolean;
  read: (buf: Buffer, length: number) => boolean;
}

/** Whether sockets are read through `push` or through 'data' events. */
export type WireMode = 'direct' | 'plain';

export class Wire {
  readonly socket: Socket;
  reader: WireReader;
  /** Writes are encrypted, hence copied, before `write` returns when the wire is idle. */
  readonly isEncrypted: boolean;
  readonly #mode: WireMode;
  /** The TCP socket below a TLS one. */
  readonly #tcp: Socket;
  #error: Error | null = null;
  /** The reader has said false and not been resumed since. */
  #isPaused = false;

  constructor(socket: Socket, reader: WireReader, mode: WireMode, sink: ReadSink | null = null, tcp = socket) {
    this.socket = socket;
    this.reader = reader;
    this.#mode = mode;
    this.#tcp = tcp;
    this.isEncrypted = socket instanceof TLSSocket;
    socket.on('error', (error) => {
      this.#error = error;
    });
    socket.once('close', () => this.reader.onClose(this.#error));
    socket.on('drain', () => this.reader.onDrain());
    if (mode === 'plain') this.#readPlain();
    else this.#readDirect(sink);
  }

  /** False = the peer is slow: stop reading the other side until onDrain. */
  write(bytes: Buffer): boolean {
    return this.socket.write(bytes);
  }

  /** Reads on after `onBytes` returned false. */
  resume(): void {
    if (!this.#isPaused || this.socket.destroyed) return;
    this.#isPaused = false;
    if (this.#mode === 'plain') this.socket.resume();
    // Socket#_read starts the handle again; read(0) would not, since the Readable never saw the bytes it believes are pending.
    else this.socket._read(65536);
  }

  /** Nothing written before is still waiting in memory. */
  get isIdle(): boolean {
    return this.socket.writableLength === 0;
  }

  /** The peer does not read what was written: a drain will come. */
  get isFull(): boolean {
    return this.socket.writableNeedDrain;
  }

  /** Ends with a reset, so that a peer which knows the end of a body by the connection's does not take a part for the whole. */
  abort(): void {
    // A Unix socket has no address and no reset.
    if (!this.#tcp.destroyed && this.#tcp.remoteAddress !== undefined) this.#tcp.resetAndDestroy();
    this.socket.destroy();
  }

  destroy(error?: Error): void {
    this.socket.destroy(error);
  }

  #read(buf: Buffer, length: number): boolean {
    const goesOn = this.reader.onBytes(buf, length);
    if (!goesOn) this.#isPaused = true;
    return goesOn;
  }

  #readDirect(sink: ReadSink | null): void {
    if (sink !== null) {
      sink.read = (buf, length) => this.#read(buf, length);
      if (sink.isEarly) this.socket.destroy();
    }
    this.socket.push = (chunk: Buffer | null) => {
      if (chunk !== null) return this.#read(chunk, chunk.length);
      this.reader.onEnd();
      return true;
    };
  }

  #readPlain(): void {
    this.socket.on('data', (chunk: Buffer) => {
      if (!this.#read(chunk, chunk.length)) this.socket.pause();
    });
    this.socket.once('end', () => this.reader.onEnd());
    // A socket that comes from elsewhere (a parent proxy's tunnel) may have been paused there.
    this.socket.resume();
  }
}
