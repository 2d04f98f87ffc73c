/** A reset reaches the HTTP/2 stream under a grpc-js call: what is queued does not go out. */
import {
  ChannelCredentials,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  ServerInterceptingCall,
  status,
} from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { resetStream } from '#chassis/http2-reset.js';
import {
  DataServiceClient,
  DataServiceService,
  type PresentRequest,
  type PresentResponse,
} from '#gen/wheelhouse/data/v1/data.js';

type Call = ServerDuplexStream<PresentRequest, PresentResponse>;

async function serve(present: (call: Call) => void): Promise<{ port: number; server: Server }> {
  // With an interceptor, as our servers have one: it stands between the call and its stream.
  const server = new Server({
    interceptors: [(_method, call) => new ServerInterceptingCall(call)],
  });
  server.addService(DataServiceService, {
    present,
    possess: () => undefined,
    followStatus: () => undefined,
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { port, server };
}

function frame(seq: number, size: number): PresentResponse {
  const value = { seq: BigInt(seq), payload: Buffer.alloc(size, 0x61) };
  return { event: { $case: 'output', value } };
}

test('after a reset a stalled reader gets no more than the transport already held, and no status of ours', async () => {
  let served: Call | undefined;
  const { port, server } = await serve((call) => {
    served = call;
    call.on('error', () => undefined);
    for (let index = 0; index < 64; index += 1) {
      call.write(frame(index * 65_536, 65_536));
    }
  });
  const client = new DataServiceClient(`127.0.0.1:${port}`, ChannelCredentials.createInsecure());
  const call = client.present();
  let bytes = 0;
  const ended = new Promise<number>((resolve) => {
    call.on('error', (error: { code?: number }) => resolve(error.code ?? -1));
    call.on('end', () => resolve(status.OK));
  });
  await new Promise<void>((resolve) => {
    call.once('data', () => {
      call.pause();
      resolve();
    });
  });
  await new Promise((resolve) => setTimeout(resolve, 200));
  resetStream(served);
  call.on('data', (response: PresentResponse) => {
    bytes += response.event?.$case === 'output' ? response.event.value.payload.length : 0;
  });
  call.resume();
  expect(await ended).toBe(status.CANCELLED);
  // 64 frames of 64 KiB were written; what had not left this side never does.
  expect(bytes).toBeLessThan(32 * 65_536);
  client.close();
  server.forceShutdown();
});

test('a call that is no grpc-js call is a bug, said loudly', () => {
  expect(() => resetStream({})).toThrow(/no longer keeps its HTTP\/2 stream/);
});
