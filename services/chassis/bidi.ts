/** Turns a function from stream and caller into a gRPC handler of a two-way stream. */
import type { handleBidiStreamingCall } from '@grpc/grpc-js';
import type { CallerIdentity } from './caller.js';
import { callerOf } from './grpc-server.js';
import { ServerStream } from './server-stream.js';

/** `begin` attaches to the stream before it returns, or what the caller sends first is lost. */
export function bidi<In, Out>(
  begin: (stream: ServerStream<In, Out>, caller: CallerIdentity) => void,
): handleBidiStreamingCall<In, Out> {
  return (call) => {
    const stream = new ServerStream<In, Out>(call);
    const caller = callerOf(call);
    if (caller.kind === 'refused') {
      stream.refuse(caller.refusal);
    } else {
      begin(stream, caller.value);
    }
  };
}
