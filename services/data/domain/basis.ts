/** What a presentation or a possession stands on: the terminal as authority knew it. */

import type { AttachmentRef, CarrierRef, Epoch, Generation, WorkerRef } from '#kernel/refs.js';
import type { CloseReasonName } from '#kernel/refusal.js';

export interface Basis {
  readonly workerRef: WorkerRef;
  readonly workerGeneration: Generation;
  /** Of this occupant: another one has another carrier. */
  readonly carrierRef: CarrierRef;
  readonly attachmentRef: AttachmentRef;
  readonly attachmentEpoch: Epoch;
  readonly carrierEpoch: Epoch;
}

/** What authority answered: the chain as it stands now. */
export interface Grant extends Basis {
  /** The state it was given from. */
  readonly authorityEpoch: bigint;
  /** Which of this node's streams it came by: after a break it says nothing any more. */
  readonly stream: number;
}

/**
 * Why a grant no longer leads to the terminal its bytes came from; undefined while it does.
 *
 * A difference closes: nothing is ever bound again (law P5).
 */
export function departure(basis: Basis, grant: Grant): CloseReasonName | undefined {
  if (grant.workerGeneration !== basis.workerGeneration) {
    return 'GENERATION_ADVANCED';
  }
  if (grant.carrierRef !== basis.carrierRef) {
    return 'OCCUPANT_CHANGED';
  }
  if (grant.attachmentRef !== basis.attachmentRef) {
    return 'ATTACHMENT_REINCARNATED';
  }
  if (grant.carrierEpoch !== basis.carrierEpoch) {
    return 'CARRIER_REPLACED';
  }
  return grant.attachmentEpoch === basis.attachmentEpoch ? undefined : 'ATTACHMENT_REINCARNATED';
}
