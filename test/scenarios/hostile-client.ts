/**
 * A client without manners: HTTP/2 by hand, so that what no generated client would send can be sent.
 *
 * It reads nothing that it is not asked to read, acknowledges nothing, and keeps every message as it came.
 */
import assert, { AssertionError } from 'node:assert';
import { once } from 'node:events';
import * as http2 from 'node:http2';
import type { ConnectionOptions } from 'node:tls';
import { Metadata, status } from '@grpc/grpc-js';
import type { LoadedIdentity } from '#chassis/identity-files.js';
import { refusalOf } from '#chassis/refusal-status.js';
import type { Designation } from '#client/presentation.js';
import { PossessRequest, PresentRequest } from '#gen/wheelhouse/data/v1/data.js';
import type { ReasonName } from '#kernel/refusal.js';
import { eventually, within } from '../stack/eventually.js';

/** How a call ended, as its client sees it. */
export interface RawEnd {
  /** The gRPC status by name; undefined when none came. */
  readonly status: string | undefined;
  readonly details: string;
  /** The refusal's name, if it was one. */
  readonly reason: ReasonName | undefined;
  readonly facts: Readonly<Record<string, string>>;
}

const DEADLINE_MS = 30_000;

/** One TLS connection with HTTP/2 on it. */
export class RawConnection implements Disposable {
  readonly session: http2.ClientHttp2Session;

  private constructor(session: http2.ClientHttp2Session) {
    this.session = session;
  }

  /** Connects. Throws what the handshake throws; a server may also turn a client away after it. */
  static async open(
    endpoint: string,
    { identity, rootPem }: Partial<LoadedIdentity>,
    options: ConnectionOptions & Pick<http2.ClientSessionOptions, 'settings'> = {},
  ): Promise<RawConnection> {
    const session = http2.connect(`https://${endpoint}`, {
      ...(rootPem === undefined ? {} : { ca: rootPem }),
      ...(identity === undefined ? {} : { cert: identity.certificatePem, key: identity.keyPem }),
      checkServerIdentity: () => undefined,
      // The client's own limits: what is to be seen are the server's.
      maxSendHeaderBlockLength: 16 * 1024 * 1024,
      maxSessionMemory: 256,
      ...options,
    });
    session.on('error', () => undefined);
    await within('the handshake', DEADLINE_MS, once(session, 'connect'));
    return new RawConnection(session);
  }

  /** Whether the server still talks on it. */
  get isOpen(): boolean {
    return !this.session.closed && !this.session.destroyed;
  }

  /** Begins a call. Nothing but its headers is sent. */
  call(path: string, headers: http2.OutgoingHttpHeaders = {}): RawCall {
    const stream = this.session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    });
    return new RawCall(stream);
  }

  /** Makes a call of one message and waits for its end. */
  async ask(path: string, message: Uint8Array = new Uint8Array()): Promise<RawEnd> {
    const call = this.call(path);
    call.send(message);
    call.finish();
    return await call.ended();
  }

  [Symbol.dispose](): void {
    this.session.destroy();
  }
}

/** One call, with every message that came. */
export class RawCall {
  readonly stream: http2.ClientHttp2Stream;
  readonly messages: Buffer[] = [];
  #rest = Buffer.alloc(0);
  readonly #trailers: http2.IncomingHttpHeaders = {};
  /** Resolves when nothing more will come. */
  readonly closed: Promise<unknown>;

  constructor(stream: http2.ClientHttp2Stream) {
    this.stream = stream;
    stream.on('error', () => undefined);
    // A server that has said its last word may leave our side of the stream open.
    this.closed = new Promise((resolve) => stream.once('close', resolve).once('end', resolve));
    stream.on('response', (headers) => Object.assign(this.#trailers, headers));
    stream.on('trailers', (headers) => Object.assign(this.#trailers, headers));
    stream.on('data', (chunk: Buffer) => this.#take(chunk));
  }

  /** Sends one message in gRPC's frame. */
  send(message: Uint8Array, isCompressed = false): void {
    this.sendBytes(framed(message, isCompressed));
  }

  /** Sends bytes as they are. */
  sendBytes(bytes: Uint8Array): void {
    this.stream.write(bytes);
  }

  /** Sends nothing more. */
  finish(): void {
    this.stream.end();
  }

  /** Reads nothing more: the server's flow-control window fills and stays full. */
  stopReading(): void {
    this.stream.pause();
  }

  cancel(): void {
    this.stream.close(http2.constants.NGHTTP2_CANCEL);
  }

  /** Waits for so many messages; the last of them. */
  async heard(count: number): Promise<Buffer> {
    const come = eventually(`${count} messages`, () => this.messages[count - 1], DEADLINE_MS);
    await Promise.race([come.catch(() => undefined), this.closed]);
    const message = this.messages[count - 1];
    const seen = this.messages.length;
    return message ?? assert.fail(`${count} messages were due, ${seen} came`);
  }

  /** What the first answer is: `granted` for a message, else the refusal's name, the status, or `lost`. */
  async answered(): Promise<string> {
    const heard = new Promise<string>((resolve) => {
      this.stream.once('data', () => resolve('granted'));
    });
    return await Promise.race([heard, this.ended().then(nameOf)]);
  }

  /** Waits until the server has ended it, with or without a status. */
  async ended(): Promise<RawEnd> {
    this.stream.resume();
    await within('the end of the call', DEADLINE_MS, this.closed);
    // What it has not read of ours would hold the connection's window for ever.
    this.cancel();
    const code = this.#trailers['grpc-status'];
    const metadata = Metadata.fromHttp2Headers(this.#trailers);
    const refusal = refusalOf({ metadata });
    return {
      status: code === undefined ? undefined : status[Number(code)],
      details: decodeURIComponent(String(this.#trailers['grpc-message'] ?? '')),
      reason: refusal?.reason,
      facts: refusal?.facts ?? {},
    };
  }

  #take(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= 5 && this.#rest.length >= 5 + this.#rest.readUInt32BE(1)) {
      const end = 5 + this.#rest.readUInt32BE(1);
      this.messages.push(this.#rest.subarray(5, end));
      this.#rest = this.#rest.subarray(end);
    }
  }
}

/** The first message of a look. */
export function presentOpen(
  worker: Designation,
  terms: {
    readonly windowBytes?: number;
    readonly holdLimitMs?: number;
    readonly replace?: boolean;
  } = {},
): Uint8Array {
  const value = { ...named(worker), ...terms };
  return PresentRequest.encode(
    PresentRequest.fromPartial({ operation: { $case: 'open', value } }),
  ).finish();
}

/** The first message of a possession. */
export function possessOpen(
  worker: Designation,
  terms: {
    readonly argv: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
    readonly rows?: number;
    readonly cols?: number;
    readonly headless?: boolean;
  },
): Uint8Array {
  const { argv, env = {}, rows = 24, cols = 80, headless = false } = terms;
  const value = { ...named(worker), argv: [...argv], env, geometry: { rows, cols }, headless };
  return PossessRequest.encode(
    PossessRequest.fromPartial({ operation: { $case: 'open', value } }),
  ).finish();
}

function named({ workerRef, generation }: Designation) {
  return { workerRef, expectedWorkerGeneration: generation };
}

/** An acknowledgement: the same bytes on both kinds of stream. */
export function outputAck(nextSeq: bigint): Uint8Array {
  return PresentRequest.encode({ operation: { $case: 'ack', value: { nextSeq } } }).finish();
}

/** The refusal's name, the status where there is none, or `lost` where the connection did not last for either. */
export function nameOf({ reason, status: code }: RawEnd): string {
  return reason ?? code ?? 'lost';
}

/** What one call with an empty message comes to, `turned away` where no connection lasts for it. */
export async function outcomeOf(
  endpoint: string,
  identity: Partial<LoadedIdentity>,
  path: string,
): Promise<string> {
  try {
    using connection = await RawConnection.open(endpoint, identity);
    const call = connection.call(path);
    call.send(new Uint8Array());
    call.finish();
    const answer = await call.answered();
    return answer === 'lost' ? 'turned away' : answer;
  } catch (error) {
    if (error instanceof AssertionError) {
      throw error;
    }
    return 'turned away';
  }
}

/** A message with gRPC's five bytes before it. */
export function framed(message: Uint8Array, isCompressed = false): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(isCompressed ? 1 : 0, 0);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}
