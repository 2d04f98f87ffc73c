/**
 * A node says what it carries, authority says what goes on.
 *
 * The world wins: a terminal it does not hold is ended, one it holds and the node lacks is released.
 * A new life of the node carries nothing of the old one.
 */
import { granted, type Outcome } from '#kernel/outcome.js';
import type { AttachmentRef } from '#kernel/refs.js';
import type { CloseReasonName } from '#kernel/refusal.js';
import { releasedAndVacated, releasedUnlessSeated } from './attachments.js';
import type { Carried, Reconcile } from './command.js';
import type { Decision } from './decision.js';
import type { Effect, Verdict } from './effect.js';
import { nodeConnected } from './presence.js';
import type { State } from './state.js';
import type { Attachment, Occupancy, Worker, World, WorldEvent } from './world.js';

/** Never refuses: the node's stream serves once the facts are durable. */
export function decideReconcile(command: Reconcile, state: State): Outcome<Decision> {
  const { node, dataIncarnation, endpoint } = command;
  const presence = nodeConnected(state.presence, node, { dataIncarnation, endpoint });
  const verdicts = command.carried.map((carried) => ({
    attachmentRef: carried.attachmentRef,
    endReason: endReasonOf(carried, command, state.world),
  }));
  const kept = keptOf(verdicts);
  const held = heldOn(node, state.world);
  const events = held.flatMap((each) => settled(each, command, kept, state));
  const moved = held.filter((each) => hasMoved(each, command.carried, kept));
  const effects: Effect[] = [
    { kind: 'tell-reconciled', node, verdicts },
    ...moved.map(tellReattached),
    { kind: 'resume-closings', node },
  ];
  return granted({ events, presence, effects });
}

/** A worker whose occupant possesses a terminal. */
interface Held {
  readonly worker: Worker;
  readonly occupancy: Occupancy;
  readonly attachment: Attachment;
}

function heldOn(node: string, world: World): readonly Held[] {
  const held: Held[] = [];
  for (const worker of world.workers.values()) {
    const { occupancy } = worker;
    if (worker.node === node && occupancy?.attachment !== undefined) {
      held.push({ worker, occupancy, attachment: occupancy.attachment });
    }
  }
  return held;
}

function keptOf(verdicts: readonly Verdict[]): ReadonlySet<AttachmentRef> {
  const kept = verdicts.filter(({ endReason }) => endReason === undefined);
  return new Set(kept.map(({ attachmentRef }) => attachmentRef));
}

/** Why a carried terminal has to end; undefined when it goes on. */
function endReasonOf(
  carried: Carried,
  { node, dataIncarnation }: Reconcile,
  world: World,
): CloseReasonName | undefined {
  const worker = world.workers.get(carried.workerRef);
  if (worker === undefined || worker.node !== node) {
    return 'OWNER_LOST';
  }
  if (worker.standing !== 'open') {
    return 'WORKER_CLOSED';
  }
  if (worker.workerGeneration !== carried.workerGeneration) {
    return 'GENERATION_ADVANCED';
  }
  const { occupancy } = worker;
  if (occupancy === undefined) {
    return 'AGENT_UNBOUND';
  }
  return endReasonOfTerminal(carried, occupancy, dataIncarnation);
}

function endReasonOfTerminal(
  carried: Carried,
  { carrierEpoch, attachment }: Occupancy,
  dataIncarnation: Reconcile['dataIncarnation'],
): CloseReasonName | undefined {
  if (attachment === undefined) {
    return 'RELEASED';
  }
  if (attachment.attachmentRef !== carried.attachmentRef) {
    return 'CARRIER_REPLACED';
  }
  // A life of the node that did not start it, or an epoch that was never given: not the same terminal.
  const isSame =
    attachment.dataIncarnation === dataIncarnation &&
    carried.attachmentEpoch <= attachment.attachmentEpoch &&
    carried.carrierEpoch <= carrierEpoch;
  return isSame ? undefined : 'ATTACHMENT_REINCARNATED';
}

/** What an inventory makes of one terminal that the world holds on its node. */
function settled(
  { worker, attachment }: Held,
  { dataIncarnation }: Reconcile,
  kept: ReadonlySet<AttachmentRef>,
  state: State,
): readonly WorldEvent[] {
  const { workerRef, standing } = worker;
  const { attachmentRef, phase } = attachment;
  if (attachment.dataIncarnation !== dataIncarnation) {
    return releasedAndVacated(worker, 'owner-lost');
  }
  // A closing worker's terminal is released by its fences, not by the inventory.
  if (standing === 'closing') {
    return [];
  }
  if (!kept.has(attachmentRef)) {
    return releasedUnlessSeated(worker, attachment, state);
  }
  // Its activation was on the way when the stream or the world ended.
  return phase === 'reserved' ? [{ kind: 'attachment-active', workerRef, attachmentRef }] : [];
}

/** Whether a terminal changed hands while its node was away. */
function hasMoved(
  { occupancy, attachment }: Held,
  carried: readonly Carried[],
  kept: ReadonlySet<AttachmentRef>,
): boolean {
  const { attachmentRef, attachmentEpoch } = attachment;
  return (
    kept.has(attachmentRef) &&
    carried.some(
      (each) =>
        each.attachmentRef === attachmentRef &&
        (each.attachmentEpoch !== attachmentEpoch || each.carrierEpoch !== occupancy.carrierEpoch),
    )
  );
}

function tellReattached({ worker, occupancy, attachment }: Held): Effect {
  return {
    kind: 'tell-reattached',
    node: worker.node,
    workerRef: worker.workerRef,
    attachmentRef: attachment.attachmentRef,
    attachmentEpoch: attachment.attachmentEpoch,
    carrierEpoch: occupancy.carrierEpoch,
  };
}
