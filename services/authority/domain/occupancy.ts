/** Who sits at a worker: an agent of the worker's own actor sits down; its seat is vacated when it is gone. */
import { andThen, granted, type Outcome, refused } from '#kernel/outcome.js';
import { epoch } from '#kernel/refs.js';
import { releasedAndVacated } from './attachments.js';
import type { Occupy, Vacate } from './command.js';
import { admitGrowth, type Decision, facts } from './decision.js';
import type { Effect } from './effect.js';
import { isSeated, livingPeer, type Peer } from './presence.js';
import { admitStanding } from './resolve.js';
import type { State, Surroundings } from './state.js';
import type { Worker } from './world.js';

/**
 * Sits the caller down. Asking again changes nothing.
 *
 * Foreign and unknown workers are one to an agent. Refuses AGENT_CHANNEL_NOT_BOUND, WORKER_NOT_YOURS,
 * WORKER_CLOSED, WORKER_GENERATION_ADVANCED, LOCUS_OCCUPIED, OWNER_UNREACHABLE, JOURNAL_FULL.
 */
export function decideOccupy(
  command: Occupy,
  state: State,
  surroundings: Surroundings,
): Outcome<Decision> {
  const bound = livingPeer(state.presence, command.asker, surroundings.nowMs);
  return andThen(bound, (peer) => {
    const own = andThen(admitOwn(command, state), (worker) => admitStanding(worker, command));
    return andThen(own, (worker) => sitDown(worker, peer, command, state, surroundings));
  });
}

function admitOwn(command: Occupy, state: State): Outcome<Worker> {
  const worker = state.world.workers.get(command.workerRef);
  return worker === undefined || worker.actor !== command.asker.name
    ? refused('WORKER_NOT_YOURS')
    : granted(worker);
}

function sitDown(
  worker: Worker,
  peer: Peer,
  command: Occupy,
  state: State,
  surroundings: Surroundings,
): Outcome<Decision> {
  const { workerRef, occupancy, node } = worker;
  if (occupancy?.peerRef === peer.peerRef) {
    return facts(state.presence, []);
  }
  if (occupancy !== undefined) {
    return refused('LOCUS_OCCUPIED');
  }
  if (!state.presence.nodes.has(node)) {
    return refused('OWNER_UNREACHABLE', { node });
  }
  const { peerRef, lineage } = peer;
  const { carrierRef } = command;
  const carrierEpoch = epoch(1n);
  return andThen(admitGrowth(surroundings), () =>
    facts(state.presence, [
      { kind: 'occupied', workerRef, peerRef, lineage, carrierRef, carrierEpoch },
    ]),
  );
}

/** Empties the seat of a peer that did not come back, and ends what it possessed. */
export function decideVacate(command: Vacate, state: State): Outcome<Decision> {
  const worker = state.world.workers.get(command.workerRef);
  const isStale =
    worker === undefined ||
    worker.standing !== 'open' ||
    worker.occupancy?.peerRef !== command.peerRef ||
    isSeated(state.presence, worker);
  if (isStale) {
    return facts(state.presence, []);
  }
  const events = releasedAndVacated(worker, 'agent-unbound');
  const fence: Effect = {
    kind: 'fence',
    node: worker.node,
    workerRef: worker.workerRef,
    scope: 'POSSESSION',
    reason: 'AGENT_UNBOUND',
  };
  return facts(state.presence, events, worker.occupancy?.attachment === undefined ? [] : [fence]);
}
