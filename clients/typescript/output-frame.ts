/**
 * Reads the messages of Present and Possess, output frames without a copy.
 *
 * A frame is nearly every message, and the generated decoder copies its payload. Here a message that
 * is nothing but one frame in canonical field order is read by hand and its payload is a view of the
 * message; anything else, an unknown field included, goes to the generated decoder.
 */
import {
  type OutputFrame,
  PossessResponse,
  PresentResponse,
} from '#gen/wheelhouse/data/v1/data.js';

/** Field 2 of the response, field 2 of the frame: length-delimited. */
const TAG_LENGTH_2 = 0x12;
/** Field 1 of the frame: varint. */
const TAG_VARINT_1 = 0x08;

export function readPresentResponse(message: Buffer): PresentResponse {
  const frame = readFrame(message);
  return frame === undefined
    ? PresentResponse.decode(message)
    : { event: { $case: 'output', value: frame } };
}

export function readPossessResponse(message: Buffer): PossessResponse {
  const frame = readFrame(message);
  return frame === undefined
    ? PossessResponse.decode(message)
    : { event: { $case: 'output', value: frame } };
}

/** Undefined unless the message is exactly one output frame with a payload. */
function readFrame(message: Buffer): OutputFrame | undefined {
  const body = message[0] === TAG_LENGTH_2 ? readVarint(message, 1) : undefined;
  if (body === undefined || BigInt(message.length - body.next) !== body.value) {
    return undefined;
  }
  const seq =
    message[body.next] === TAG_VARINT_1
      ? readVarint(message, body.next + 1)
      : { value: 0n, next: body.next };
  if (seq === undefined || message[seq.next] !== TAG_LENGTH_2) {
    return undefined;
  }
  const length = readVarint(message, seq.next + 1);
  if (length === undefined || BigInt(message.length - length.next) !== length.value) {
    return undefined;
  }
  return { seq: seq.value, payload: message.subarray(length.next) };
}

interface Varint {
  readonly value: bigint;
  /** Index of the first byte after it. */
  readonly next: number;
}

/** At most nine bytes, so that no bit is lost; a longer one is left to the generated decoder. */
function readVarint(bytes: Buffer, start: number): Varint | undefined {
  let low = 0;
  let scale = 1;
  for (let index = start; index < start + 7; index += 1) {
    const byte = bytes[index];
    if (byte === undefined) {
      return undefined;
    }
    low += (byte & 0x7f) * scale;
    if (byte < 0x80) {
      return { value: BigInt(low), next: index + 1 };
    }
    scale *= 0x80;
  }
  return readVarintTail(bytes, start + 7, BigInt(low));
}

function readVarintTail(bytes: Buffer, start: number, low: bigint): Varint | undefined {
  let value = low;
  for (let index = start; index < start + 2; index += 1) {
    const byte = bytes[index];
    if (byte === undefined) {
      return undefined;
    }
    value += BigInt(byte & 0x7f) << BigInt(49 + 7 * (index - start));
    if (byte < 0x80) {
      return { value, next: index + 1 };
    }
  }
  return undefined;
}
