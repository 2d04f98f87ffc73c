/**
 * Resets the HTTP/2 stream under a grpc-js server call.
 *
 * grpc-js has no public call for it: `end()` lets 1–3 MB of queued frames out and `destroy()` sends no
 * reset (docs/architecture.md, traps). This reaches through its private fields; test/contracts/http2-reset.test.ts
 * guards the reach, and the package is pinned.
 */
import { constants, type ServerHttp2Stream } from 'node:http2';
import { bug } from '#kernel/bug.js';

interface Layer {
  readonly call?: Layer;
  readonly nextCall?: Layer;
  readonly stream?: ServerHttp2Stream;
}

export function resetStream(call: unknown): void {
  let layer = call as Layer | undefined;
  while (layer !== undefined && layer.stream === undefined) {
    layer = layer.nextCall ?? layer.call;
  }
  const stream = layer?.stream ?? bug('grpc-js no longer keeps its HTTP/2 stream where it was');
  stream.close(constants.NGHTTP2_CANCEL);
}
