/** CloseWorker: ends a position, its presentations first, then its terminal. */
import type { Handle } from '#chassis/unary.js';
import {
  type CloseWorkerRequest,
  type CloseWorkerResponse,
  Fencing,
} from '#gen/wheelhouse/authority/v1/authority.js';
import { granted } from '#kernel/outcome.js';
import { shownWorker } from './reply.js';
import { askerOf, type Room } from './room.js';
import { toDesignation } from './wire.js';

export function closeWorker(room: Room): Handle<CloseWorkerRequest, CloseWorkerResponse> {
  return async (request, caller) => {
    const { authority, closings } = room;
    const asker = askerOf(room, caller);
    const designation = toDesignation(request);
    const begun = await authority.ask({ kind: 'close-worker', asker, ...designation });
    if (begun.kind === 'refused') {
      return begun;
    }
    // The point of no return is behind: WorkerClosing is durable, whatever becomes of this call.
    const outcome = await closings.outcome(designation.workerRef);
    const fencing = outcome === 'fenced' ? Fencing.FENCED : Fencing.FENCED_BY_DISCONNECT;
    return granted({ fencing, worker: shownWorker(authority.state, designation.workerRef) });
  };
}
