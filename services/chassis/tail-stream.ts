/**
 * A gRPC stream of facts as a follower reads it.
 *
 * What is in flight is bounded by the transport: grpc-js holds 16 messages and HTTP/2 one window
 * (64 KiB); beyond that the owner's writes wait, and it reads no further.
 */
import type { ClientReadableStream } from '@grpc/grpc-js';

/** Yields messages as they come; throws what ended the call. The call is cancelled however this ends. */
export async function* tailStream<Message>(
  call: ClientReadableStream<Message>,
  { opened, signal }: { readonly opened: () => void; readonly signal: AbortSignal },
): AsyncGenerator<Message> {
  const cancel = (): void => call.cancel();
  // A call that is cancelled before it is read has an error nobody would hear.
  call.on('error', () => undefined);
  call.once('metadata', opened);
  signal.addEventListener('abort', cancel, { once: true });
  if (signal.aborted) {
    cancel();
  }
  try {
    yield* call as AsyncIterable<Message>;
  } finally {
    signal.removeEventListener('abort', cancel);
    cancel();
  }
}
