/** Turns a function from request and caller to outcome into a gRPC handler. */
import type { handleUnaryCall } from '@grpc/grpc-js';
import { status } from '@grpc/grpc-js';
import type { Outcome } from '#kernel/outcome.js';
import type { CallerIdentity } from './caller.js';
import { Fault } from './fault.js';
import { callerOf } from './grpc-server.js';
import { statusOf } from './refusal-status.js';

export type Handle<Request, Response> = (
  request: Request,
  caller: CallerIdentity,
) => Outcome<Response> | Promise<Outcome<Response>>;

/**
 * A refusal ends the call by name, a fault as UNAVAILABLE without one. Anything else that is thrown
 * is a bug: it leaves as an unhandled rejection and ends the process (law E3).
 */
export function unary<Request, Response>(
  handle: Handle<Request, Response>,
): handleUnaryCall<Request, Response> {
  return (call, callback) => {
    const answer = async (): Promise<void> => {
      const caller = callerOf(call);
      const outcome = caller.kind === 'refused' ? caller : await handle(call.request, caller.value);
      if (outcome.kind === 'granted') {
        callback(null, outcome.value);
      } else {
        callback(statusOf(outcome.refusal));
      }
    };
    void answer().catch((error: unknown) => {
      if (!(error instanceof Fault)) {
        callback({ code: status.INTERNAL, details: 'bug' });
        throw error;
      }
      callback({ code: status.UNAVAILABLE, details: error.message });
    });
  };
}
