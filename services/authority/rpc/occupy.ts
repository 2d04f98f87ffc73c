/** Occupy: sits the calling agent down at a worker of its own actor. */
import type { Handle } from '#chassis/unary.js';
import type { OccupyRequest, OccupyResponse } from '#gen/wheelhouse/authority/v1/authority.js';
import { andThen, granted } from '#kernel/outcome.js';
import { type CarrierRef, ref } from '#kernel/refs.js';
import { shownWorker } from './reply.js';
import { askerOf, type Room } from './room.js';
import { toDesignation } from './wire.js';

export function occupy(room: Room): Handle<OccupyRequest, OccupyResponse> {
  return async (request, caller) => {
    const asker = askerOf(room, caller);
    const designation = toDesignation(request);
    const carrierRef = ref<CarrierRef>(room.names.fresh('cr'));
    const outcome = await room.authority.ask({ kind: 'occupy', asker, carrierRef, ...designation });
    return andThen(outcome, ({ state }) =>
      granted({ dataEndpoint: shownWorker(state, designation.workerRef).dataEndpoint }),
    );
  };
}
