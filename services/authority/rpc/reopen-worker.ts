/** ReopenWorker: makes a closed position anew, one generation later. */
import type { Handle } from '#chassis/unary.js';
import type {
  ReopenWorkerRequest,
  ReopenWorkerResponse,
} from '#gen/wheelhouse/authority/v1/authority.js';
import { settledWorker } from './reply.js';
import { askerOf, type Room } from './room.js';
import { toDesignation } from './wire.js';

export function reopenWorker(room: Room): Handle<ReopenWorkerRequest, ReopenWorkerResponse> {
  return async (request, caller) => {
    const asker = askerOf(room, caller);
    const designation = toDesignation(request);
    const outcome = await room.authority.ask({ kind: 'reopen-worker', asker, ...designation });
    return settledWorker(outcome, designation.workerRef);
  };
}
