/** Authority as the data plane's core sees it: asked again at every operation, and heard when it fences. */
import type { Outcome } from '#kernel/outcome.js';
import type { AttachmentRef, Epoch, Generation, WorkerRef } from '#kernel/refs.js';
import type { CloseReasonName } from '#kernel/refusal.js';
import type { Grant } from './basis.js';

/** A connected caller, as introduced to authority by its certificate. Valid on this node only. */
export type Caller = number;

export type AskedOperation = 'PRESENT' | 'OBSERVE' | 'AGENT_INPUT' | 'AGENT_RESIZE';

/** What a caller designates: a worker, and the generation it last saw. */
export interface Designation {
  readonly caller: Caller;
  readonly workerRef: WorkerRef;
  readonly expectedGeneration: Generation;
}

export interface Question extends Designation {
  readonly operation: AskedOperation;
  /** The presentation's number on this node; 0 for the agent's own operations. */
  readonly presentation: bigint;
  readonly replace: boolean;
}

/** A terminal to be started. */
export interface Reservation {
  readonly grant: Grant;
  readonly workspace: string;
}

/** What authority ends, and from which state on. */
export interface FenceOrder {
  readonly workerRef: WorkerRef;
  readonly scope: 'PRESENTATIONS' | 'POSSESSION';
  readonly reason: CloseReasonName;
}

/** How one terminal of the inventory stands. */
export interface Verdict {
  readonly attachmentRef: AttachmentRef;
  /** Undefined when it goes on. */
  readonly endReason: CloseReasonName | undefined;
}

export interface Reattachment {
  readonly workerRef: WorkerRef;
  readonly attachmentRef: AttachmentRef;
  readonly attachmentEpoch: Epoch;
  readonly carrierEpoch: Epoch;
}

/** What is told to whoever carries the terminals. */
export interface LinkEvents {
  /** Every terminal carried now, for the inventory. */
  carried(): readonly Carried[];
  /**
   * Authority has begun to answer. Every presentation of before is over, by this reason, and so is every
   * terminal without a verdict that keeps it.
   */
  onReconciled(verdicts: readonly Verdict[], presentationsEnd: CloseReasonName): void;
  /** Authority does not answer any more. */
  onLost(): void;
  /** Resolves when the fence is in force: that is what is acknowledged. */
  onFence(order: FenceOrder): Promise<void>;
  onReattached(reattachment: Reattachment): void;
}

export interface Carried {
  readonly workerRef: WorkerRef;
  readonly workerGeneration: Generation;
  readonly attachmentRef: AttachmentRef;
  readonly attachmentEpoch: Epoch;
  readonly carrierEpoch: Epoch;
}

export interface AuthorityLink {
  /** Introduces a connected caller; `farewell` frees it. Refuses PEERS_EXHAUSTED. */
  introduce(certificate: Uint8Array): Outcome<Caller>;
  farewell(caller: Caller): void;
  /** A number for a presentation that this node has never used. */
  nextPresentation(): bigint;
  presentationEnded(presentation: bigint): void;
  /**
   * Asks. The question leaves at the end of this turn at the earliest, with all that were asked in
   * it: whatever was read before the call was read before the resolve began (law P6).
   * Exactly one of the two is called, in the order of authority's epochs.
   */
  ask(question: Question, onAnswer: (answer: Outcome<Grant>) => void, onLost: () => void): void;
  /** Refuses AUTHORITY_UNREACHABLE while authority does not answer. Durable when granted. */
  reserve(designation: Designation): Promise<Outcome<Reservation>>;
  /** Durable when granted. Refuses by authority's name, or AUTHORITY_UNREACHABLE. */
  activate(attachmentRef: AttachmentRef): Promise<Outcome<void>>;
  /** Durable when granted. What authority was not told it learns from the next inventory. */
  release(attachmentRef: AttachmentRef): Promise<Outcome<void>>;
  /** Whether a grant is of another stream, or older than a fence that this node has heard (law P7). */
  isFenced(grant: Grant): boolean;
}
