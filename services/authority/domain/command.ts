/** Everything that can be asked to change the world. Fresh names come with the command. */
import type {
  AttachmentRef,
  CarrierRef,
  DataIncarnation,
  Epoch,
  Generation,
  LocusRef,
  PeerRef,
  WorkerRef,
  WorldIncarnation,
} from '#kernel/refs.js';
import type { Asker } from './presence.js';
import type { Designation } from './resolve.js';

/** A newly signed certificate, not yet handed out. */
export interface Issued {
  /** SHA-256, lower-case hex. */
  readonly fingerprint: string;
  /** Milliseconds since 1970. */
  readonly notAfterMs: number;
}

/** One terminal as its node's inventory has it. */
export interface Carried {
  readonly workerRef: WorkerRef;
  readonly workerGeneration: Generation;
  readonly attachmentRef: AttachmentRef;
  readonly attachmentEpoch: Epoch;
  readonly carrierEpoch: Epoch;
}

interface StartWorld {
  readonly kind: 'start-world';
  readonly worldIncarnation: WorldIncarnation;
}
/** Begins the caller's peer with the fresh name, or joins the one that lives. */
export interface Bind {
  readonly kind: 'bind';
  readonly asker: Asker;
  readonly peerRef: PeerRef;
}
export interface Renew {
  readonly kind: 'renew';
  readonly asker: Asker;
  readonly issued: Issued;
}
export interface OpenWorker {
  readonly kind: 'open-worker';
  readonly asker: Asker;
  readonly workerRef: WorkerRef;
  readonly locusRef: LocusRef;
  readonly name: string;
  readonly actor: string;
  readonly workspace: string;
  readonly node: string;
  readonly driveAllowed: boolean;
  readonly delegationAllowed: boolean;
}
export type CloseWorker = Designation & { readonly kind: 'close-worker'; readonly asker: Asker };
/** Every node that carried it has acknowledged. */
export interface FinishClosing {
  readonly kind: 'finish-closing';
  readonly workerRef: WorkerRef;
}
export type ReopenWorker = Designation & { readonly kind: 'reopen-worker'; readonly asker: Asker };
export interface IssueIdentity {
  readonly kind: 'issue-identity';
  readonly asker: Asker;
  readonly actor: string;
  readonly issued: Issued;
}
export interface IssueRunCertificate {
  readonly kind: 'issue-run-certificate';
  readonly asker: Asker;
  readonly issued: Issued;
}
export type Occupy = Designation & {
  readonly kind: 'occupy';
  readonly asker: Asker;
  readonly carrierRef: CarrierRef;
};
/** The occupant of that name is gone for good; nothing when it is back or another sits there. */
export interface Vacate {
  readonly kind: 'vacate';
  readonly workerRef: WorkerRef;
  readonly peerRef: PeerRef;
}
export type Reserve = Designation & {
  readonly kind: 'reserve';
  readonly asker: Asker;
  readonly node: string;
  readonly attachmentRef: AttachmentRef;
};
export interface Activate {
  readonly kind: 'activate';
  readonly node: string;
  readonly attachmentRef: AttachmentRef;
}
export interface Release {
  readonly kind: 'release';
  readonly node: string;
  readonly attachmentRef: AttachmentRef;
}
/** A node says what it carries. */
export interface Reconcile {
  readonly kind: 'reconcile';
  readonly node: string;
  readonly dataIncarnation: DataIncarnation;
  readonly endpoint: string;
  readonly carried: readonly Carried[];
}

export type Command =
  | StartWorld
  | Bind
  | Renew
  | OpenWorker
  | CloseWorker
  | FinishClosing
  | ReopenWorker
  | IssueIdentity
  | IssueRunCertificate
  | Occupy
  | Vacate
  | Reserve
  | Activate
  | Release
  | Reconcile;
