import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OutputFrame, PossessResponse, PresentResponse } from '#gen/wheelhouse/data/v1/data.js';
import { readPossessResponse, readPresentResponse } from './output-frame.js';

const seqs = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  fc.constantFrom(0n, 1n, 127n, 128n, 2n ** 49n - 1n, 2n ** 49n, 2n ** 63n - 1n, 2n ** 63n),
);
const payloads = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
const frames = fc.record({ seq: seqs, payload: payloads });

function encode(seq: bigint, payload: Buffer): Buffer {
  const event = { $case: 'output', value: { seq, payload } } as const;
  return Buffer.from(PresentResponse.encode({ event }).finish());
}

test('a frame reads as the generated decoder reads it, on both streams', () => {
  fc.assert(
    fc.property(frames, ({ seq, payload }) => {
      const message = encode(seq, payload);
      expect(readPresentResponse(message)).toEqual(PresentResponse.decode(message));
      expect(readPossessResponse(message)).toEqual(PossessResponse.decode(message));
    }),
  );
});

test('the payload is a view of the message', () => {
  const message = encode(70_000n, Buffer.from('hello'));
  const { event } = readPresentResponse(message);
  const payload = event?.$case === 'output' ? event.value.payload : undefined;
  expect(payload?.buffer).toBe(message.buffer);
  expect(payload?.toString()).toBe('hello');
});

test('every other message, cut or padded ones too, reads as the generated decoder reads it', () => {
  const others: PresentResponse['event'][] = [
    { $case: 'opened', value: { outSeq: 9n, geometry: { rows: 2, cols: 3 }, windowBytes: 7 } },
    { $case: 'end', value: { outSeq: 9n, exit: { how: { $case: 'code', value: 3 } } } },
    undefined,
  ];
  for (const event of others) {
    const message = Buffer.from(PresentResponse.encode({ event }).finish());
    expect(readPresentResponse(message)).toEqual(PresentResponse.decode(message));
  }
  const whole = encode(300n, Buffer.from('some bytes'));
  for (let length = 0; length < whole.length; length += 1) {
    expect(attempt(readPresentResponse, whole.subarray(0, length))).toEqual(
      attempt((message) => PresentResponse.decode(message), whole.subarray(0, length)),
    );
  }
});

test('unknown fields, in the message or in the frame, change nothing', () => {
  fc.assert(
    fc.property(frames, fc.integer({ min: 8, max: 2000 }), fc.boolean(), (frame, field, inside) => {
      const unknown = Buffer.concat([varint(field << 3), varint(77)]);
      const inner = Buffer.from(OutputFrame.encode(frame).finish());
      const body = inside ? Buffer.concat([inner, unknown]) : inner;
      const message = Buffer.concat([
        Buffer.from([0x12]),
        varint(body.length),
        body,
        inside ? Buffer.alloc(0) : unknown,
      ]);
      expect(readPresentResponse(message).event).toEqual({ $case: 'output', value: frame });
    }),
  );
});

test('bytes that are no message at all fail or read as they do with the generated decoder', () => {
  const anything = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));
  const framelike = anything.map((bytes) => Buffer.concat([Buffer.from([0x12]), bytes]));
  fc.assert(
    fc.property(fc.oneof(anything, framelike), (message) => {
      expect(attempt(readPresentResponse, message)).toEqual(
        attempt((bytes) => PresentResponse.decode(bytes), message),
      );
    }),
    { numRuns: 2000 },
  );
});

function attempt(read: (message: Buffer) => PresentResponse, message: Buffer): unknown {
  try {
    return read(message);
  } catch {
    return 'unreadable';
  }
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) {
    bytes.push((rest & 0x7f) | 0x80);
  }
  return Buffer.from([...bytes, rest]);
}
