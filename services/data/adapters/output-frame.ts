/**
 * Output frames on the wire, without a copy in between.
 *
 * grpc-js asks a serializer for a buffer and copies it once into the message it sends. What it gets
 * here only knows how long it is and how to copy itself: header first, then the bytes straight out of
 * the terminal's ring. Half of the throughput is in this file (bench row `out`).
 * test/contracts/output-frame.test.ts holds it against the generated codec and grpc-js.
 */
import { PossessResponse, PresentResponse } from '#gen/wheelhouse/data/v1/data.js';
import type { Terminal } from '../domain/terminal.js';

/** `output` is field 2 of both responses; OutputFrame has `seq` = 1 and `payload` = 2. */
const OUTPUT_TAG = (2 << 3) | 2;
const SEQ_TAG = 1 << 3;
const PAYLOAD_TAG = (2 << 3) | 2;
/** Two tags, two lengths of at most 5 bytes, one more tag and a position of at most 10. */
const HEADER_BYTES_MAX = 3 + 2 * 5 + 10;

/** Bytes of a terminal that stand at a position, as one response message. */
export class OutputFrameMessage {
  readonly byteLength: number;
  readonly #terminal: Terminal;
  readonly #fromSeq: bigint;
  readonly #lengthBytes: number;
  #isCopied = false;
  /** The bytes, once the terminal need not keep them any more. */
  #kept: Buffer | undefined;
  readonly #header = Buffer.allocUnsafe(HEADER_BYTES_MAX);
  readonly #headerBytes: number;

  constructor(terminal: Terminal, fromSeq: bigint, lengthBytes: number) {
    this.#terminal = terminal;
    this.#fromSeq = fromSeq;
    this.#lengthBytes = lengthBytes;
    this.#headerBytes = writeHeader(this.#header, fromSeq, lengthBytes);
    this.byteLength = this.#headerBytes + lengthBytes;
  }

  /**
   * First position the terminal has to keep for this message; undefined when it has been copied.
   *
   * grpc-js copies it in the turn in which it is written, unless another message is still on its way.
   */
  get neededSeq(): bigint | undefined {
    return this.#isCopied || this.#kept !== undefined ? undefined : this.#fromSeq;
  }

  /** Takes the bytes out of the terminal, if nobody has yet: whoever owns it is about to let them go. */
  keep(): void {
    if (this.neededSeq !== undefined) {
      this.#kept = Buffer.allocUnsafe(this.#lengthBytes);
      this.#terminal.copyOut(this.#fromSeq, this.#kept);
    }
  }

  /** As `Buffer.copy`: called once by grpc-js. */
  copy(target: Uint8Array, at: number): number {
    target.set(this.#header.subarray(0, this.#headerBytes), at);
    const start = at + this.#headerBytes;
    if (this.#kept === undefined) {
      this.#terminal.copyOut(this.#fromSeq, target.subarray(start, start + this.#lengthBytes));
    } else {
      target.set(this.#kept, start);
    }
    this.#isCopied = true;
    return this.byteLength;
  }
}

function writeHeader(header: Buffer, seq: bigint, payloadBytes: number): number {
  const seqBytes = seq === 0n ? 0 : 1 + varintBytes(seq);
  const inner = seqBytes + 1 + varintBytes(BigInt(payloadBytes)) + payloadBytes;
  let at = header.writeUInt8(OUTPUT_TAG, 0);
  at = writeVarint(header, at, BigInt(inner));
  if (seq !== 0n) {
    at = writeVarint(header, header.writeUInt8(SEQ_TAG, at), seq);
  }
  return writeVarint(header, header.writeUInt8(PAYLOAD_TAG, at), BigInt(payloadBytes));
}

function writeVarint(header: Buffer, from: number, value: bigint): number {
  let at = from;
  let rest = value;
  while (rest > 0x7fn) {
    at = header.writeUInt8(Number(rest & 0x7fn) | 0x80, at);
    rest >>= 7n;
  }
  return header.writeUInt8(Number(rest), at);
}

function varintBytes(value: bigint): number {
  let count = 1;
  for (let rest = value >> 7n; rest > 0n; rest >>= 7n) {
    count += 1;
  }
  return count;
}

type Encoder<Message> = { encode(message: Message): { finish(): Uint8Array } };

/** grpc-js's type asks for a Buffer and its code uses `byteLength` and `copy` of it. */
function serializerOf<Message>(codec: Encoder<Message>) {
  return (message: Message | OutputFrameMessage): Buffer =>
    message instanceof OutputFrameMessage
      ? (message as unknown as Buffer)
      : Buffer.from(codec.encode(message).finish());
}

export const serializePresentResponse = serializerOf<PresentResponse>(PresentResponse);
export const serializePossessResponse = serializerOf<PossessResponse>(PossessResponse);
