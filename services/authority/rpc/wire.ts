/** Our nouns as the contract's messages, and back. */
import { type CallerIdentity, isName } from '#chassis/caller.js';
import { toRefused } from '#chassis/refusal-status.js';
import {
  type Answer,
  type Carried as CarriedMessage,
  type Grant as GrantMessage,
  type Worker as WorkerMessage,
  WorkerState,
} from '#gen/wheelhouse/authority/v1/authority.js';
import { assertNever } from '#kernel/bug.js';
import type { Outcome } from '#kernel/outcome.js';
import { epoch, generation, ref } from '#kernel/refs.js';
import type { Carried } from '../domain/command.js';
import type { Asker } from '../domain/presence.js';
import { lineageOf } from '../domain/renewals.js';
import type { Designation, Grant } from '../domain/resolve.js';
import type { State } from '../domain/state.js';
import type { Worker } from '../domain/world.js';

/** A connection's identity as the world knows it. */
export function toAsker({ world }: State, identity: CallerIdentity): Asker {
  const { role, name, fingerprint, notAfterMs } = identity;
  return { role, name, lineage: lineageOf(world.renewals, fingerprint), notAfterMs };
}

/** The data node that a caller's certificate names; undefined for everyone else. */
export function dataNodeOf(identity: CallerIdentity): string | undefined {
  const { role, name, node } = identity;
  return role === 'service' && name === 'data' && node !== undefined && isName(node)
    ? node
    : undefined;
}

export function toDesignation(message: {
  readonly workerRef: string;
  readonly expectedWorkerGeneration: bigint;
}): Designation {
  return {
    workerRef: ref(message.workerRef),
    expectedGeneration: generation(message.expectedWorkerGeneration),
  };
}

export function toCarried(message: CarriedMessage): Carried {
  return {
    workerRef: ref(message.workerRef),
    workerGeneration: generation(message.workerGeneration),
    attachmentRef: ref(message.attachmentRef),
    attachmentEpoch: epoch(message.attachmentEpoch),
    carrierEpoch: epoch(message.carrierEpoch),
  };
}

export function fromGrant({ worker, occupancy, attachment, peerRef }: Grant): GrantMessage {
  return {
    actor: worker.actor,
    locusRef: worker.locusRef,
    workerGeneration: worker.workerGeneration,
    carrierRef: occupancy.carrierRef,
    carrierEpoch: occupancy.carrierEpoch,
    attachmentRef: attachment.attachmentRef,
    attachmentEpoch: attachment.attachmentEpoch,
    ptyEpoch: attachment.ptyEpoch,
    peerRef,
  };
}

export function fromOutcome(outcome: Outcome<Grant>): Answer {
  return outcome.kind === 'granted'
    ? { verdict: { $case: 'grant', value: fromGrant(outcome.value) } }
    : { verdict: { $case: 'refused', value: toRefused(outcome.refusal) } };
}

/** A worker for whoever may see who opened it and whether it is looked at: the operator. */
export function fromWorker(state: State, worker: Worker): WorkerMessage {
  return {
    workerRef: worker.workerRef,
    workerGeneration: worker.workerGeneration,
    name: worker.name,
    actor: worker.actor,
    openedBy: worker.openedBy,
    workspace: worker.workspace,
    state: stateOf(state, worker),
    driveAllowed: worker.driveAllowed,
    delegationAllowed: worker.delegationAllowed,
    dataNode: worker.node,
    dataEndpoint: state.presence.nodes.get(worker.node)?.endpoint ?? '',
  };
}

/** A worker for its own agent: not who opened it, nor whether anybody looks. */
export function fromOwnWorker(state: State, worker: Worker): WorkerMessage {
  const message = fromWorker(state, worker);
  const isWatched = message.state === WorkerState.WATCHED;
  return { ...message, openedBy: '', state: isWatched ? WorkerState.RUNNING : message.state };
}

function stateOf({ presence }: State, { standing, occupancy }: Worker): WorkerState {
  switch (standing) {
    case 'closed':
      return WorkerState.CLOSED;
    case 'closing':
      return WorkerState.CLOSING;
    case 'open': {
      const attachment = occupancy?.attachment;
      if (attachment?.phase !== 'active') {
        return WorkerState.VACANT;
      }
      return presence.presentations.has(attachment.attachmentRef)
        ? WorkerState.WATCHED
        : WorkerState.RUNNING;
    }
    default:
      return assertNever(standing);
  }
}
