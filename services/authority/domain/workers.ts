/** Positions: opened, closed in two steps, made anew. */
import { assertNever } from '#kernel/bug.js';
import { andThen, granted, type Outcome, refused } from '#kernel/outcome.js';
import { generation } from '#kernel/refs.js';
import { releasedAndVacated } from './attachments.js';
import type { CloseWorker, FinishClosing, OpenWorker, ReopenWorker } from './command.js';
import { admitGrowth, type Decision, facts } from './decision.js';
import { livingPeer, withoutPresentations } from './presence.js';
import { admitGeneration, type Designation } from './resolve.js';
import type { State, Surroundings } from './state.js';
import type { Opening, Worker, World, WorldEvent } from './world.js';

/** Longest workspace path, bytes: PATH_MAX of Linux. */
const workspaceBytesMax = 4096;

const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/;
const NAME_RULE = '1 to 63 characters of a-z 0-9 . _ -, beginning with a letter or a digit';

/**
 * Makes a position, opened by the caller's operator.
 *
 * Refuses CONTROL_CHANNEL_NOT_BOUND, REQUEST_INVALID, JOURNAL_FULL, WORKER_NAME_TAKEN,
 * WORKERS_EXHAUSTED, ACTOR_NOT_YOURS.
 */
export function decideOpenWorker(
  command: OpenWorker,
  state: State,
  surroundings: Surroundings,
): Outcome<Decision> {
  const bound = livingPeer(state.presence, command.asker, surroundings.nowMs);
  const formed = andThen(bound, () => admitForm(command));
  const room = andThen(formed, () => admitGrowth(surroundings));
  const place = andThen(room, () => admitPlace(command, state.world, surroundings));
  return andThen(place, () =>
    facts(state.presence, [{ kind: 'worker-opened', ...openingOf(command) }]),
  );
}

function openingOf(command: OpenWorker): Opening {
  const { workerRef, locusRef, name, actor, workspace, node } = command;
  const { driveAllowed, delegationAllowed } = command;
  return {
    workerRef,
    locusRef,
    name,
    actor,
    openedBy: command.asker.name,
    workspace,
    node,
    driveAllowed,
    delegationAllowed,
  };
}

function admitForm(command: OpenWorker): Outcome<undefined> {
  for (const field of ['name', 'actor', 'node'] as const) {
    if (!NAME.test(command[field])) {
      const onWire = field === 'node' ? 'dataNode' : field;
      return refused('REQUEST_INVALID', { field: onWire, rule: NAME_RULE });
    }
  }
  const { workspace } = command;
  const isPath =
    workspace.startsWith('/') &&
    !workspace.includes('\0') &&
    utf8Length(workspace) <= workspaceBytesMax;
  return isPath
    ? granted(undefined)
    : refused('REQUEST_INVALID', {
        field: 'workspace',
        rule: `an absolute path of at most ${workspaceBytesMax} bytes without NUL`,
      });
}

function utf8Length(text: string): number {
  let length = 0;
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    length += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  }
  return length;
}

/** One pass over the workers: the name free, the actor the caller's own, room for one more. */
function admitPlace(
  command: OpenWorker,
  world: World,
  { limits }: Surroundings,
): Outcome<undefined> {
  for (const worker of world.workers.values()) {
    if (worker.name === command.name) {
      const { name, standing } = worker;
      return refused('WORKER_NAME_TAKEN', { worker: name, state: standing });
    }
  }
  for (const worker of world.workers.values()) {
    // Whoever opens a worker for an actor may have that actor's identity; so an actor keeps its operator.
    if (worker.actor === command.actor && worker.openedBy !== command.asker.name) {
      return refused('ACTOR_NOT_YOURS', { actor: command.actor });
    }
  }
  return world.workers.size >= limits.workersMax
    ? refused('WORKERS_EXHAUSTED', { workersMax: String(limits.workersMax) })
    : granted(undefined);
}

/**
 * Begins to close: from here on nothing resolves. Joins a closing that has begun.
 *
 * Open to every bound human-control peer: destroying is not reading (law P4). Refuses
 * CONTROL_CHANNEL_NOT_BOUND, WORKER_UNKNOWN, WORKER_GENERATION_ADVANCED, WORKER_CLOSED.
 */
export function decideCloseWorker(
  command: CloseWorker,
  state: State,
  { nowMs }: Surroundings,
): Outcome<Decision> {
  const bound = livingPeer(state.presence, command.asker, nowMs);
  const known = andThen(bound, () => admitKnown(state.world, command));
  const current = andThen(known, (worker) => admitGeneration(worker, command));
  return andThen(current, (worker) => beginClosing(worker, command, state));
}

function beginClosing(worker: Worker, command: CloseWorker, state: State): Outcome<Decision> {
  const { workerRef, standing, name } = worker;
  switch (standing) {
    case 'closed':
      return refused('WORKER_CLOSED', { worker: name });
    case 'closing':
      return facts(state.presence, []);
    case 'open':
      return facts(
        withoutPresentations(state.presence, (each) => each.workerRef === workerRef),
        [{ kind: 'worker-closing', workerRef, closedBy: command.asker.name }],
        [{ kind: 'begin-closing', workerRef }],
      );
    default:
      return assertNever(standing);
  }
}

function admitKnown(world: World, { workerRef }: Designation): Outcome<Worker> {
  const worker = world.workers.get(workerRef);
  return worker === undefined ? refused('WORKER_UNKNOWN', { worker: workerRef }) : granted(worker);
}

/** Ends what a closing has begun. Nothing when it has ended already. */
export function decideFinishClosing(command: FinishClosing, state: State): Outcome<Decision> {
  const worker = state.world.workers.get(command.workerRef);
  if (worker?.standing !== 'closing') {
    return facts(state.presence, []);
  }
  const closed: WorldEvent = { kind: 'worker-closed', workerRef: worker.workerRef };
  return facts(state.presence, [...releasedAndVacated(worker, 'worker-closed'), closed]);
}

/**
 * Makes a closed position anew, one generation later.
 *
 * Refuses CONTROL_CHANNEL_NOT_BOUND, WORKER_UNKNOWN, WORKER_NOT_OPENED_BY_CALLER, WORKER_CLOSING,
 * WORKER_NOT_CLOSED, WORKER_GENERATION_ADVANCED, JOURNAL_FULL.
 */
export function decideReopenWorker(
  command: ReopenWorker,
  state: State,
  surroundings: Surroundings,
): Outcome<Decision> {
  const bound = livingPeer(state.presence, command.asker, surroundings.nowMs);
  const known = andThen(bound, () => admitKnown(state.world, command));
  const closed = andThen(known, (worker) => admitReopening(worker, command));
  const room = andThen(closed, () => admitGrowth(surroundings));
  return andThen(room, () => andThen(closed, (worker) => reopened(worker, state)));
}

function reopened({ workerRef, workerGeneration }: Worker, state: State): Outcome<Decision> {
  const next = generation(workerGeneration + 1n);
  return facts(state.presence, [{ kind: 'worker-reopened', workerRef, workerGeneration: next }]);
}

function admitReopening(worker: Worker, command: ReopenWorker): Outcome<Worker> {
  const { name, openedBy, standing } = worker;
  if (openedBy !== command.asker.name) {
    return refused('WORKER_NOT_OPENED_BY_CALLER', { worker: name });
  }
  if (standing === 'closing') {
    return refused('WORKER_CLOSING', { worker: name });
  }
  return standing === 'open'
    ? refused('WORKER_NOT_CLOSED', { worker: name })
    : admitGeneration(worker, command);
}
