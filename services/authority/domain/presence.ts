/**
 * What lives only as long as connections do: peers, data nodes, presentations. Never durable (law P9).
 *
 * Every transition returns the next presence and the fences it calls for.
 */
import { granted, type Outcome, refused } from '#kernel/outcome.js';
import type { AttachmentRef, DataIncarnation, Lineage, PeerRef, WorkerRef } from '#kernel/refs.js';
import type { CloseReasonName, Refusal } from '#kernel/refusal.js';
import type { Step } from '#kernel/stepper.js';
import type { Effect } from './effect.js';
import { instant } from './instant.js';
import type { Worker, World } from './world.js';

/** The channels a peer may live on. */
export type PeerRole = 'human-control' | 'agent';

/** The life of one bound identity. A human-control peer has no actor and never gets one. */
export interface Peer {
  readonly peerRef: PeerRef;
  readonly lineage: Lineage;
  readonly role: PeerRole;
  /** The operator, or the actor. */
  readonly name: string;
  /** End of its newest certificate, milliseconds since 1970. */
  readonly notAfterMs: number;
  /** Its Bind streams; it ends with the last. At least 1. */
  readonly streamCount: number;
}

/** A data node whose stream serves. */
export interface ConnectedNode {
  readonly dataIncarnation: DataIncarnation;
  readonly endpoint: string;
}

/** The operator's look at a terminal: dies with its stream, its peer or its terminal. */
export interface Presentation {
  readonly node: string;
  /** Its number on the node's stream. */
  readonly number: bigint;
  readonly peerRef: PeerRef;
  readonly workerRef: WorkerRef;
  readonly attachmentRef: AttachmentRef;
}

export interface Presence {
  readonly peers: ReadonlyMap<Lineage, Peer>;
  readonly nodes: ReadonlyMap<string, ConnectedNode>;
  /** One at most for each terminal (law P10). */
  readonly presentations: ReadonlyMap<AttachmentRef, Presentation>;
}

export type Transition = Step<Presence, Effect>;

export const emptyPresence: Presence = {
  peers: new Map(),
  nodes: new Map(),
  presentations: new Map(),
};

/** The one human-control peer, if one lives. */
export function controlPeer(presence: Presence): Peer | undefined {
  for (const peer of presence.peers.values()) {
    if (peer.role === 'human-control') {
      return peer;
    }
  }
  return undefined;
}

/** A caller as its certificate says, with the lineage it belongs to. */
export interface Asker {
  readonly role: PeerRole | 'creator' | 'service';
  readonly name: string;
  readonly lineage: Lineage;
  /** End of the certificate it presented, milliseconds since 1970. */
  readonly notAfterMs: number;
}

/**
 * The living peer of a caller.
 *
 * Refuses CERTIFICATE_EXPIRED when its newest certificate has ended, even if nobody has noticed yet,
 * CONTROL_CHANNEL_NOT_BOUND or AGENT_CHANNEL_NOT_BOUND when it has no Bind.
 */
export function livingPeer(presence: Presence, asker: Asker, nowMs: number): Outcome<Peer> {
  const peer = presence.peers.get(asker.lineage);
  const notAfterMs = peer?.notAfterMs ?? asker.notAfterMs;
  if (notAfterMs <= nowMs) {
    return { kind: 'refused', refusal: certificateExpired(notAfterMs) };
  }
  if (peer === undefined) {
    return refused(
      asker.role === 'agent' ? 'AGENT_CHANNEL_NOT_BOUND' : 'CONTROL_CHANNEL_NOT_BOUND',
    );
  }
  return granted(peer);
}

/** The refusal of everything asked in the name of a certificate past its end. */
function certificateExpired(notAfterMs: number): Refusal {
  return {
    reason: 'CERTIFICATE_EXPIRED',
    facts: { expiredAt: instant(notAfterMs) },
  };
}

/** Whether the occupant of a worker lives now, rather than being awaited. */
export function isSeated(presence: Presence, worker: Worker): boolean {
  const { occupancy } = worker;
  return (
    occupancy !== undefined && presence.peers.get(occupancy.lineage)?.peerRef === occupancy.peerRef
  );
}

export function withPeer(presence: Presence, peer: Peer): Presence {
  return { ...presence, peers: new Map(presence.peers).set(peer.lineage, peer) };
}

/** One Bind stream of a peer is over. The last one ends the peer. */
export function bindGone(presence: Presence, world: World, peerRef: PeerRef): Transition {
  const peer = peerNamed(presence, peerRef);
  if (peer === undefined) {
    return { state: presence, effects: [] };
  }
  if (peer.streamCount > 1) {
    return {
      state: withPeer(presence, { ...peer, streamCount: peer.streamCount - 1 }),
      effects: [],
    };
  }
  return peerEnded(presence, world, peer);
}

/** Ends every peer whose newest certificate has ended; their Bind streams are told by name. */
export function endExpired(presence: Presence, world: World, nowMs: number): Transition {
  let step: Transition = { state: presence, effects: [] };
  for (const peer of presence.peers.values()) {
    if (peer.notAfterMs <= nowMs) {
      const ended = peerEnded(step.state, world, peer);
      const refusal = certificateExpired(peer.notAfterMs);
      const refusal_: Effect = { kind: 'refuse-binds', lineage: peer.lineage, refusal };
      step = { state: ended.state, effects: [...step.effects, ...ended.effects, refusal_] };
    }
  }
  return step;
}

function peerNamed(presence: Presence, peerRef: PeerRef): Peer | undefined {
  for (const peer of presence.peers.values()) {
    if (peer.peerRef === peerRef) {
      return peer;
    }
  }
  return undefined;
}

function peerEnded(presence: Presence, world: World, peer: Peer): Transition {
  const peers = new Map(presence.peers);
  peers.delete(peer.lineage);
  const without = { ...presence, peers };
  return peer.role === 'human-control'
    ? endPresentations(without, (each) => each.peerRef === peer.peerRef, 'CONTROL_UNBOUND')
    : agentEnded(without, world, peer);
}

/** A possession outlives its peer for a grace; a seat without one does not. */
function agentEnded(presence: Presence, world: World, peer: Peer): Transition {
  let state = presence;
  const effects: Effect[] = [];
  for (const worker of world.workers.values()) {
    if (worker.standing !== 'open' || worker.occupancy?.peerRef !== peer.peerRef) {
      continue;
    }
    const { workerRef } = worker;
    const { peerRef } = peer;
    const ended = endPresentations(state, (each) => each.workerRef === workerRef, 'AGENT_UNBOUND');
    state = ended.state;
    effects.push(...ended.effects);
    effects.push(
      worker.occupancy.attachment?.phase === 'active'
        ? { kind: 'begin-grace', workerRef, peerRef }
        : { kind: 'vacate', workerRef, peerRef },
    );
  }
  return { state, effects };
}

/** Ends presentations and fences each on its node. */
export function endPresentations(
  presence: Presence,
  isEnding: (presentation: Presentation) => boolean,
  reason: CloseReasonName,
): Transition {
  const ending = [...presence.presentations.values()].filter(isEnding);
  const fences = ending.map(
    ({ node, workerRef }): Effect => ({
      kind: 'fence',
      node,
      workerRef,
      scope: 'PRESENTATIONS',
      reason,
    }),
  );
  return { state: withoutPresentations(presence, isEnding), effects: fences };
}

/** Forgets presentations whose node has ended them itself, or is gone. */
export function withoutPresentations(
  presence: Presence,
  isEnding: (presentation: Presentation) => boolean,
): Presence {
  const kept = [...presence.presentations].filter(([, each]) => !isEnding(each));
  return kept.length === presence.presentations.size
    ? presence
    : { ...presence, presentations: new Map(kept) };
}

/** A node's stream serves now. Presentations of an earlier stream died with it. */
export function nodeConnected(
  presence: Presence,
  node: string,
  connected: ConnectedNode,
): Presence {
  const without = withoutPresentations(presence, (each) => each.node === node);
  return { ...without, nodes: new Map(presence.nodes).set(node, connected) };
}

/** A node's stream is over. What it carries stays its own until its next inventory says. */
export function nodeGone(presence: Presence, node: string): Presence {
  const nodes = new Map(presence.nodes);
  nodes.delete(node);
  return { ...withoutPresentations(presence, (each) => each.node === node), nodes };
}
