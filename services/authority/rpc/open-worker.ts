/** OpenWorker: makes a position for an agent. */
import type { Handle } from '#chassis/unary.js';
import type {
  OpenWorkerRequest,
  OpenWorkerResponse,
} from '#gen/wheelhouse/authority/v1/authority.js';
import { type LocusRef, ref, type WorkerRef } from '#kernel/refs.js';
import { settledWorker } from './reply.js';
import { askerOf, type Room } from './room.js';

export function openWorker(room: Room): Handle<OpenWorkerRequest, OpenWorkerResponse> {
  return async (request, caller) => {
    const { name, workspace, driveAllowed, delegationAllowed } = request;
    const workerRef = ref<WorkerRef>(room.names.fresh('wk'));
    const outcome = await room.authority.ask({
      kind: 'open-worker',
      asker: askerOf(room, caller),
      workerRef,
      locusRef: ref<LocusRef>(room.names.fresh('lc')),
      name,
      actor: request.actor === '' ? name : request.actor,
      workspace,
      node: request.dataNode === '' ? room.settings.defaultNode : request.dataNode,
      driveAllowed,
      delegationAllowed,
    });
    return settledWorker(outcome, workerRef);
  };
}
