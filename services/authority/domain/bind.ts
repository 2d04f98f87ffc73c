/**
 * How a peer begins: by the first Bind stream of its lineage.
 *
 * At most one human-control peer lives at a time. The same lineage joins it; any other is refused.
 */
import { granted, type Outcome, refused } from '#kernel/outcome.js';
import type { Bind } from './command.js';
import type { Decision } from './decision.js';
import type { Effect } from './effect.js';
import {
  type Asker,
  controlPeer,
  type Peer,
  type PeerRole,
  type Presence,
  withPeer,
} from './presence.js';
import { newestEndOf } from './renewals.js';
import type { Limits, State } from './state.js';
import { nextEpoch, type Occupancy, type Worker, type WorldEvent } from './world.js';

/** Refuses CONTROL_CHANNEL_OCCUPIED, ROLE_NOT_AGENT, PEERS_EXHAUSTED. */
export function decideBind(command: Bind, state: State, limits: Limits): Outcome<Decision> {
  const { asker, peerRef } = command;
  const { presence } = state;
  const living = presence.peers.get(asker.lineage);
  if (living !== undefined) {
    return decideJoin(command, living, presence, limits);
  }
  if (asker.role !== 'human-control' && asker.role !== 'agent') {
    return refused('ROLE_NOT_AGENT', { callerRole: asker.role });
  }
  if (asker.role === 'human-control' && controlPeer(presence) !== undefined) {
    return refused('CONTROL_CHANNEL_OCCUPIED');
  }
  if (asker.role === 'agent' && presence.peers.size >= limits.peersMax) {
    return refused('PEERS_EXHAUSTED', { peersMax: String(limits.peersMax) });
  }
  const peer = born(command, asker.role, state);
  const begun = withPeer(presence, peer);
  if (peer.role === 'human-control') {
    const events: WorldEvent[] = [{ kind: 'control-bound', operator: peer.name, peerRef }];
    return granted({ events, presence: begun, effects: [] });
  }
  const seats = seatsAwaiting(state, peer);
  const events = seats.map((worker) => reoccupied(worker, peer));
  return granted({ events, presence: begun, effects: seats.flatMap(reattached) });
}

function decideJoin(
  { asker }: Bind,
  living: Peer,
  presence: Presence,
  { bindsPerPeerMax }: Limits,
): Outcome<Decision> {
  return living.streamCount < bindsPerPeerMax
    ? granted({ events: [], presence: withPeer(presence, joined(living, asker)), effects: [] })
    : refused('PEERS_EXHAUSTED', { bindsPerPeerMax: String(bindsPerPeerMax) });
}

function joined(living: Peer, asker: Asker): Peer {
  const notAfterMs = Math.max(living.notAfterMs, asker.notAfterMs);
  return { ...living, notAfterMs, streamCount: living.streamCount + 1 };
}

/** A renewal handed out before a break counts: its holder has it. */
function born(command: Bind, role: PeerRole, state: State): Peer {
  const { lineage, name, notAfterMs } = command.asker;
  const newest = Math.max(notAfterMs, newestEndOf(state.world.renewals, lineage));
  return { peerRef: command.peerRef, lineage, role, name, notAfterMs: newest, streamCount: 1 };
}

/** A worker that somebody sits at. */
type Occupied = Worker & { readonly occupancy: Occupancy };

/** The seats that wait for this lineage to come back. */
function seatsAwaiting(state: State, peer: Peer): readonly Occupied[] {
  return [...state.world.workers.values()].filter(
    (worker): worker is Occupied =>
      worker.standing === 'open' && worker.occupancy?.lineage === peer.lineage,
  );
}

/** The same seat and the same terminal in new hands: both epochs grow. */
function reoccupied({ workerRef, occupancy }: Occupied, peer: Peer): WorldEvent {
  const { attachment } = occupancy;
  return {
    kind: 'reoccupied',
    workerRef,
    peerRef: peer.peerRef,
    carrierEpoch: nextEpoch(occupancy.carrierEpoch),
    attachmentEpoch: attachment === undefined ? undefined : nextEpoch(attachment.attachmentEpoch),
  };
}

function reattached({ workerRef, node, occupancy }: Occupied): readonly Effect[] {
  const { attachment } = occupancy;
  if (attachment === undefined) {
    return [];
  }
  return [
    {
      kind: 'tell-reattached',
      node,
      workerRef,
      attachmentRef: attachment.attachmentRef,
      attachmentEpoch: nextEpoch(attachment.attachmentEpoch),
      carrierEpoch: nextEpoch(occupancy.carrierEpoch),
    },
  ];
}
