/** What is to be done about a change, in order, once it is in force. Values: the shell performs them. */

import type { AttachmentRef, Epoch, Lineage, PeerRef, WorkerRef } from '#kernel/refs.js';
import type { CloseReasonName, Refusal } from '#kernel/refusal.js';

export type FenceScope = 'PRESENTATIONS' | 'POSSESSION';

/** How one carried terminal stands, in answer to an inventory. */
export interface Verdict {
  readonly attachmentRef: AttachmentRef;
  /** Undefined when it goes on. */
  readonly endReason: CloseReasonName | undefined;
}

export type Effect =
  | {
      readonly kind: 'fence';
      readonly node: string;
      readonly workerRef: WorkerRef;
      readonly scope: FenceScope;
      readonly reason: CloseReasonName;
    }
  | {
      readonly kind: 'tell-reattached';
      readonly node: string;
      readonly workerRef: WorkerRef;
      readonly attachmentRef: AttachmentRef;
      readonly attachmentEpoch: Epoch;
      readonly carrierEpoch: Epoch;
    }
  | {
      readonly kind: 'tell-reconciled';
      readonly node: string;
      readonly verdicts: readonly Verdict[];
    }
  /** The occupant may come back for a while; then its seat is vacated. */
  | { readonly kind: 'begin-grace'; readonly workerRef: WorkerRef; readonly peerRef: PeerRef }
  | { readonly kind: 'vacate'; readonly workerRef: WorkerRef; readonly peerRef: PeerRef }
  /** Ends every Bind stream of a peer by name. */
  | { readonly kind: 'refuse-binds'; readonly lineage: Lineage; readonly refusal: Refusal }
  | { readonly kind: 'begin-closing'; readonly workerRef: WorkerRef }
  /** The node's stream serves now: what waited for it goes on. */
  | { readonly kind: 'resume-closings'; readonly node: string };
