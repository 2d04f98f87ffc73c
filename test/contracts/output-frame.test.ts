/** Output frames serialise themselves: held against the generated codec and against grpc-js. */
import { randomBytes } from 'node:crypto';
import {
  ChannelCredentials,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
} from '@grpc/grpc-js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  DataServiceClient,
  DataServiceService,
  PossessResponse,
  type PresentRequest,
  PresentResponse,
} from '#gen/wheelhouse/data/v1/data.js';
import {
  OutputFrameMessage,
  serializePresentResponse,
} from '../../services/data/adapters/output-frame.js';
import type { Terminal } from '../../services/data/domain/terminal.js';

/** A double: a terminal that has only its output. */
function terminalOf(bytes: Uint8Array, atSeq: bigint): Terminal {
  const copyOut = (fromSeq: bigint, target: Uint8Array): number => {
    const from = Number(fromSeq - atSeq);
    target.set(bytes.subarray(from, from + target.length));
    return target.length;
  };
  return { copyOut } as Partial<Terminal> as Terminal;
}

function serialised(message: OutputFrameMessage): Buffer {
  const buffer = Buffer.alloc(message.byteLength + 5);
  message.copy(buffer, 5);
  return buffer.subarray(5);
}

test('a frame is, byte for byte, what the generated codec writes, at any position and length', () => {
  const seq = fc.oneof(fc.constant(0n), fc.bigInt(0n, 300n), fc.bigInt(0n, 2n ** 64n - 1n));
  fc.assert(
    fc.property(seq, fc.uint8Array({ maxLength: 70_000, size: 'max' }), (seq, payload) => {
      const frame = serialised(
        new OutputFrameMessage(terminalOf(payload, seq), seq, payload.length),
      );
      const value = { seq, payload: Buffer.from(payload) };
      const message = { event: { $case: 'output' as const, value } };
      if (payload.length > 0) {
        expect(frame.equals(Buffer.from(PresentResponse.encode(message).finish()))).toBe(true);
      }
      for (const { event } of [PresentResponse.decode(frame), PossessResponse.decode(frame)]) {
        expect(event?.$case === 'output' && event.value.seq).toBe(seq);
        expect(event?.$case === 'output' && event.value.payload.equals(payload)).toBe(true);
      }
    }),
    { numRuns: 60 },
  );
});

test('grpc-js takes what only has byteLength and copy for a message', async () => {
  const bytes = randomBytes(64 * 1024);
  const server = new Server();
  server.addService(
    {
      ...DataServiceService,
      present: { ...DataServiceService.present, responseSerialize: serializePresentResponse },
    },
    {
      present: (call: ServerDuplexStream<PresentRequest, PresentResponse | OutputFrameMessage>) => {
        call.write(new OutputFrameMessage(terminalOf(bytes, 7n), 7n, bytes.length));
        call.end();
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const client = new DataServiceClient(`127.0.0.1:${port}`, ChannelCredentials.createInsecure());
  const responses: PresentResponse[] = [];
  await new Promise<void>((resolve, reject) => {
    const call = client.present();
    call.on('data', (response: PresentResponse) => responses.push(response));
    call.on('end', resolve);
    call.on('error', reject);
  });
  client.close();
  server.forceShutdown();
  expect(responses).toHaveLength(1);
  const event = responses[0]?.event;
  expect(event?.$case === 'output' && event.value.seq === 7n).toBe(true);
  expect(event?.$case === 'output' && bytes.equals(event.value.payload)).toBe(true);
});
