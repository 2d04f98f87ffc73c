/**
 * Which terminal an occupant possesses: admitted before it is started, confirmed once it runs,
 * released when it is gone.
 */
import { andThen, granted, type Outcome, refused } from '#kernel/outcome.js';
import { epoch } from '#kernel/refs.js';
import type { Activate, Release, Reserve } from './command.js';
import { admitGrowth, type Decision, facts } from './decision.js';
import { endPresentations, isSeated } from './presence.js';
import { resolveSeat, type Seat } from './resolve.js';
import type { State, Surroundings } from './state.js';
import {
  type Attachment,
  holderOf,
  type VacateReason,
  type Worker,
  type WorldEvent,
} from './world.js';

/**
 * Admits a terminal for the asking agent, before it is started.
 *
 * Refuses what an agent's own operations do, then CARRIER_ALREADY_ATTACHED, OWNER_UNREACHABLE,
 * JOURNAL_FULL.
 */
export function decideReserve(
  command: Reserve,
  state: State,
  surroundings: Surroundings,
): Outcome<Decision> {
  const seat = resolveSeat(state, command, surroundings.nowMs);
  const free = andThen(seat, (found) => reserve(found, command, state));
  return andThen(free, (decision) => andThen(admitGrowth(surroundings), () => granted(decision)));
}

function reserve({ worker, occupancy }: Seat, command: Reserve, state: State): Outcome<Decision> {
  if (occupancy.attachment !== undefined) {
    return refused('CARRIER_ALREADY_ATTACHED');
  }
  const host = state.presence.nodes.get(command.node);
  if (host === undefined) {
    return refused('OWNER_UNREACHABLE', { node: command.node });
  }
  return facts(state.presence, [
    {
      kind: 'attachment-reserved',
      workerRef: worker.workerRef,
      attachmentRef: command.attachmentRef,
      attachmentEpoch: epoch(1n),
      ptyEpoch: epoch(1n),
      dataIncarnation: host.dataIncarnation,
    },
  ]);
}

/**
 * The reserved terminal runs. Telling it twice changes nothing.
 *
 * Refuses CARRIER_NOT_ATTACHED when the terminal is gone by now, or is not this node's: what ended it
 * has been fenced, on a stream that this answer follows.
 */
export function decideActivate(command: Activate, state: State): Outcome<Decision> {
  const holder = heldBy(command, state);
  if (holder === undefined) {
    return refused('CARRIER_NOT_ATTACHED');
  }
  const { workerRef } = holder.worker;
  const { attachmentRef, phase } = holder.attachment;
  return facts(
    state.presence,
    phase === 'active' ? [] : [{ kind: 'attachment-active', workerRef, attachmentRef }],
  );
}

/**
 * The terminal is gone, and with it every look at it. The occupant stays while its peer lives.
 *
 * Releasing what is not held changes nothing.
 */
export function decideRelease(command: Release, state: State): Outcome<Decision> {
  const holder = heldBy(command, state);
  if (holder === undefined) {
    return facts(state.presence, []);
  }
  const { worker, attachment } = holder;
  const { attachmentRef } = attachment;
  const ended = endPresentations(
    state.presence,
    (each) => each.attachmentRef === attachmentRef,
    'RELEASED',
  );
  return facts(ended.state, releasedUnlessSeated(worker, attachment, state), ended.effects);
}

/** A terminal that this node, and no other, carries. */
function heldBy(
  { node, attachmentRef }: Activate | Release,
  state: State,
): { readonly worker: Worker; readonly attachment: Attachment } | undefined {
  const holder = holderOf(state.world, attachmentRef);
  return holder?.worker.node === node ? holder : undefined;
}

/** A released terminal's occupant keeps its seat only while its peer lives. */
export function releasedUnlessSeated(
  worker: Worker,
  { attachmentRef }: Attachment,
  state: State,
): readonly WorldEvent[] {
  const { workerRef } = worker;
  const released: WorldEvent = { kind: 'attachment-released', workerRef, attachmentRef };
  return isSeated(state.presence, worker)
    ? [released]
    : [released, { kind: 'vacated', workerRef, reason: 'agent-unbound' }];
}

/** The facts that empty a worker: its terminal released first, then its seat. */
export function releasedAndVacated(worker: Worker, reason: VacateReason): readonly WorldEvent[] {
  const { workerRef, occupancy } = worker;
  if (occupancy === undefined) {
    return [];
  }
  const vacated: WorldEvent = { kind: 'vacated', workerRef, reason };
  const { attachment } = occupancy;
  return attachment === undefined
    ? [vacated]
    : [
        { kind: 'attachment-released', workerRef, attachmentRef: attachment.attachmentRef },
        vacated,
      ];
}
