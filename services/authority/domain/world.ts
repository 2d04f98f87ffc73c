/**
 * The durable world: what a restart brings back, as a fold of the journal's events.
 *
 * A worker stands open, closing or closed; who sits at it and which terminal they possess hang on it:
 *
 *   open ──WorkerClosing──► closing ──WorkerClosed──► closed ──WorkerReopened──► open, one generation later
 *   vacant ──Occupied──► occupied ──AttachmentReserved──► reserved ──AttachmentActive──► active
 *      ▲───────Vacated──────┘ ▲─────────────AttachmentReleased─────────────┘
 *
 * Nothing here remembers a presentation or a living peer: those end with the process (law P9).
 */
import { assertNever, bug } from '#kernel/bug.js';
import {
  type AttachmentRef,
  type CarrierRef,
  type DataIncarnation,
  type Epoch,
  epoch,
  type Generation,
  generation,
  type Lineage,
  type LocusRef,
  type PeerRef,
  type WorkerRef,
  type WorldIncarnation,
} from '#kernel/refs.js';
import { keepRenewal, noRenewals, type Renewal, type Renewals } from './renewals.js';

type Standing = 'open' | 'closing' | 'closed';

/** The terminal the occupant possesses. */
export interface Attachment {
  readonly attachmentRef: AttachmentRef;
  readonly attachmentEpoch: Epoch;
  readonly ptyEpoch: Epoch;
  /** The life of the data service that hosts it. */
  readonly dataIncarnation: DataIncarnation;
  /** Reserved until its program runs. */
  readonly phase: 'reserved' | 'active';
}

/** Who sits at a worker. */
export interface Occupancy {
  readonly peerRef: PeerRef;
  /** Which certificates may come back to this seat after a break. */
  readonly lineage: Lineage;
  readonly carrierRef: CarrierRef;
  readonly carrierEpoch: Epoch;
  readonly attachment: Attachment | undefined;
}

/** Invariant: a closed worker has no occupancy. */
export interface Worker {
  readonly workerRef: WorkerRef;
  readonly locusRef: LocusRef;
  readonly workerGeneration: Generation;
  readonly name: string;
  readonly actor: string;
  /** The operator who opened it: an identity, not a peer; reopening keeps it (law P4). */
  readonly openedBy: string;
  readonly workspace: string;
  readonly node: string;
  readonly driveAllowed: boolean;
  readonly delegationAllowed: boolean;
  readonly standing: Standing;
  readonly occupancy: Occupancy | undefined;
}

export interface World {
  readonly worldIncarnation: WorldIncarnation | undefined;
  /** How many lives authority has had. */
  readonly worldGeneration: Generation;
  /** In the order they were opened. */
  readonly workers: ReadonlyMap<WorkerRef, Worker>;
  readonly renewals: Renewals;
}

export type VacateReason = 'agent-unbound' | 'owner-lost' | 'worker-closed';

/** What a worker is opened with. */
export interface Opening {
  readonly workerRef: WorkerRef;
  readonly locusRef: LocusRef;
  readonly name: string;
  readonly actor: string;
  readonly openedBy: string;
  readonly workspace: string;
  readonly node: string;
  readonly driveAllowed: boolean;
  readonly delegationAllowed: boolean;
}

export type WorldEvent =
  | {
      readonly kind: 'world-started';
      readonly worldIncarnation: WorldIncarnation;
      readonly worldGeneration: Generation;
    }
  | ({ readonly kind: 'worker-opened' } & Opening)
  | { readonly kind: 'worker-closing'; readonly workerRef: WorkerRef; readonly closedBy: string }
  | { readonly kind: 'worker-closed'; readonly workerRef: WorkerRef }
  | {
      readonly kind: 'worker-reopened';
      readonly workerRef: WorkerRef;
      readonly workerGeneration: Generation;
    }
  | {
      readonly kind: 'occupied';
      readonly workerRef: WorkerRef;
      readonly peerRef: PeerRef;
      readonly lineage: Lineage;
      readonly carrierRef: CarrierRef;
      readonly carrierEpoch: Epoch;
    }
  | {
      readonly kind: 'reoccupied';
      readonly workerRef: WorkerRef;
      readonly peerRef: PeerRef;
      readonly carrierEpoch: Epoch;
      /** Undefined when the occupant had no terminal. */
      readonly attachmentEpoch: Epoch | undefined;
    }
  | { readonly kind: 'vacated'; readonly workerRef: WorkerRef; readonly reason: VacateReason }
  | {
      readonly kind: 'attachment-reserved';
      readonly workerRef: WorkerRef;
      readonly attachmentRef: AttachmentRef;
      readonly attachmentEpoch: Epoch;
      readonly ptyEpoch: Epoch;
      readonly dataIncarnation: DataIncarnation;
    }
  | {
      readonly kind: 'attachment-active';
      readonly workerRef: WorkerRef;
      readonly attachmentRef: AttachmentRef;
    }
  | {
      readonly kind: 'attachment-released';
      readonly workerRef: WorkerRef;
      readonly attachmentRef: AttachmentRef;
    }
  /** A receipt: an identity or a run's certificate was issued. Changes nothing that decides. */
  | {
      readonly kind: 'agent-certificate-issued';
      readonly actor: string;
      readonly purpose: 'identity' | 'run';
      readonly fingerprint: string;
      readonly notAfterMs: number;
    }
  | ({
      readonly kind: 'certificate-renewed';
      readonly role: string;
      readonly name: string;
    } & Renewal)
  /** A receipt: a control peer was born. Its initiator's name is added where it is written, not here. */
  | { readonly kind: 'control-bound'; readonly operator: string; readonly peerRef: PeerRef };

export const emptyWorld: World = {
  worldIncarnation: undefined,
  worldGeneration: generation(0n),
  workers: new Map(),
  renewals: noRenewals,
};

/** Folds events in order. The given world is left as it was: a failed commit goes back to it. */
export function evolve(world: World, events: Iterable<WorldEvent>): World {
  const draft: Draft = { ...world, workers: new Map(world.workers), ownRenewals: undefined };
  for (const event of events) {
    fold(draft, event);
  }
  const { worldIncarnation, worldGeneration, workers, renewals } = draft;
  return { worldIncarnation, worldGeneration, workers, renewals };
}

/** A world in the making, private to one `evolve`: one copy for many events. */
interface Draft {
  worldIncarnation: WorldIncarnation | undefined;
  worldGeneration: Generation;
  readonly workers: Map<WorkerRef, Worker>;
  renewals: Renewals;
  /** The copy to write to, once there was something to write. */
  ownRenewals: Map<string, Renewal> | undefined;
}

function fold(draft: Draft, event: WorldEvent): void {
  switch (event.kind) {
    case 'world-started':
      draft.worldIncarnation = event.worldIncarnation;
      draft.worldGeneration = event.worldGeneration;
      return;
    case 'agent-certificate-issued':
    case 'control-bound':
      return;
    case 'certificate-renewed':
      draft.ownRenewals ??= new Map(draft.renewals);
      draft.renewals = draft.ownRenewals;
      keepRenewal(draft.ownRenewals, event);
      return;
    case 'worker-opened': {
      draft.workers.set(event.workerRef, opened(event));
      return;
    }
    default: {
      const worker = draft.workers.get(event.workerRef) ?? bug('an event of an unopened worker');
      draft.workers.set(event.workerRef, workerAfter(worker, event));
    }
  }
}

function opened(opening: Opening): Worker {
  const { workerRef, locusRef, name, actor, openedBy, workspace, node } = opening;
  const { driveAllowed, delegationAllowed } = opening;
  return {
    workerRef,
    locusRef,
    workerGeneration: generation(1n),
    name,
    actor,
    openedBy,
    workspace,
    node,
    driveAllowed,
    delegationAllowed,
    standing: 'open',
    occupancy: undefined,
  };
}

type WorkerEvent = Exclude<
  Extract<WorldEvent, { readonly workerRef: WorkerRef }>,
  { readonly kind: 'worker-opened' }
>;

function workerAfter(worker: Worker, event: WorkerEvent): Worker {
  switch (event.kind) {
    case 'worker-closing':
      return { ...worker, standing: 'closing' };
    case 'worker-closed':
      return { ...worker, standing: 'closed', occupancy: undefined };
    case 'worker-reopened':
      return { ...worker, standing: 'open', workerGeneration: event.workerGeneration };
    case 'vacated':
      return { ...worker, occupancy: undefined };
    case 'occupied':
      return { ...worker, occupancy: seated(event) };
    default:
      return { ...worker, occupancy: occupancyAfter(worker.occupancy, event) };
  }
}

function seated(event: Extract<WorldEvent, { readonly kind: 'occupied' }>): Occupancy {
  const { peerRef, lineage, carrierRef, carrierEpoch } = event;
  return { peerRef, lineage, carrierRef, carrierEpoch, attachment: undefined };
}

type OccupancyEvent = Extract<
  WorldEvent,
  {
    readonly kind:
      | 'reoccupied'
      | 'attachment-reserved'
      | 'attachment-active'
      | 'attachment-released';
  }
>;

function occupancyAfter(current: Occupancy | undefined, event: OccupancyEvent): Occupancy {
  const occupancy = current ?? bug('an event of an empty seat');
  switch (event.kind) {
    case 'reoccupied': {
      const { peerRef, carrierEpoch, attachmentEpoch } = event;
      const { attachment } = occupancy;
      const moved =
        attachment === undefined || attachmentEpoch === undefined
          ? attachment
          : { ...attachment, attachmentEpoch };
      return { ...occupancy, peerRef, carrierEpoch, attachment: moved };
    }
    case 'attachment-reserved': {
      const { attachmentRef, attachmentEpoch, ptyEpoch, dataIncarnation } = event;
      const attachment: Attachment = {
        attachmentRef,
        attachmentEpoch,
        ptyEpoch,
        dataIncarnation,
        phase: 'reserved',
      };
      return { ...occupancy, attachment };
    }
    case 'attachment-active': {
      const attachment = occupancy.attachment ?? bug('an activation of nothing');
      return { ...occupancy, attachment: { ...attachment, phase: 'active' } };
    }
    case 'attachment-released':
      return { ...occupancy, attachment: undefined };
    default:
      return assertNever(event);
  }
}

/** The epoch after this one. */
export function nextEpoch(current: Epoch): Epoch {
  return epoch(current + 1n);
}

/** The worker and occupancy that a terminal's name leads to now; undefined once it is gone. */
export function holderOf(
  world: World,
  attachmentRef: AttachmentRef,
): { readonly worker: Worker; readonly attachment: Attachment } | undefined {
  for (const worker of world.workers.values()) {
    const attachment = worker.occupancy?.attachment;
    if (attachment?.attachmentRef === attachmentRef) {
      return { worker, attachment };
    }
  }
  return undefined;
}
