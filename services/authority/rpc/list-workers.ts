/** ListWorkers: all of them for the operator, its own for an agent. */
import type { Handle } from '#chassis/unary.js';
import type {
  ListWorkersRequest,
  ListWorkersResponse,
} from '#gen/wheelhouse/authority/v1/authority.js';
import { andThen, granted } from '#kernel/outcome.js';
import { boundPeer, type Room } from './room.js';
import { fromOwnWorker, fromWorker } from './wire.js';

/** Refuses CONTROL_CHANNEL_NOT_BOUND, AGENT_CHANNEL_NOT_BOUND. */
export function listWorkers(room: Room): Handle<ListWorkersRequest, ListWorkersResponse> {
  return (_request, caller) =>
    andThen(boundPeer(room, caller), ({ role, name }) => {
      const { state } = room.authority;
      const all = [...state.world.workers.values()];
      const workers =
        role === 'human-control'
          ? all.map((worker) => fromWorker(state, worker))
          : all.filter(({ actor }) => actor === name).map((worker) => fromOwnWorker(state, worker));
      return granted({ workers });
    });
}
