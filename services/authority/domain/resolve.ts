/**
 * The chain, followed anew at every use (law P2).
 *
 *   worker → who opened it → open? → generation → this node? → occupant → terminal
 *
 * Refuses at the first broken link, by that link's name. It never falls through to a newer occupant or
 * a newer generation: a caller that named generation 3 must not start watching generation 4.
 * Nothing is remembered from one question to the next.
 */
import { assertNever } from '#kernel/bug.js';
import { granted, type Outcome, refused } from '#kernel/outcome.js';
import type { Generation, PeerRef, WorkerRef } from '#kernel/refs.js';
import { type Asker, isSeated, livingPeer, type Peer } from './presence.js';
import type { State } from './state.js';
import type { Attachment, Occupancy, Worker } from './world.js';

/** Of identity, a page designates these two and nothing else (law P1). */
export interface Designation {
  readonly workerRef: WorkerRef;
  /** The generation the caller last saw. */
  readonly expectedGeneration: Generation;
}

/** May this caller do this, on this node, to this worker, now? */
export type Question = Designation & {
  /** The node that asks; it may ask only about workers it carries. */
  readonly node: string;
  readonly asker: Asker;
} & (
    | { readonly operation: 'PRESENT' }
    | {
        readonly operation: 'OBSERVE';
        /** The presentation's number on the node's stream. */
        readonly presentation: bigint;
      }
    | { readonly operation: 'AGENT_INPUT' }
    | { readonly operation: 'AGENT_RESIZE' }
  );

/** What the chain leads to now. For services only. */
export interface Grant {
  readonly worker: Worker;
  readonly occupancy: Occupancy;
  readonly attachment: Attachment;
  /** The caller's own peer. */
  readonly peerRef: PeerRef;
}

/** Answers from the state as it stands. Changes nothing; PRESENT is registered by `present`. */
export function resolve(state: State, question: Question, nowMs: number): Outcome<Grant> {
  switch (question.operation) {
    case 'PRESENT':
      return resolveForOperator(state, question, nowMs);
    case 'OBSERVE':
      return resolveObserve(state, question, nowMs);
    case 'AGENT_INPUT':
    case 'AGENT_RESIZE':
      return resolveForAgent(state, question, nowMs);
    default:
      return assertNever(question);
  }
}

function resolveObserve(
  state: State,
  question: Extract<Question, { readonly operation: 'OBSERVE' }>,
  nowMs: number,
): Outcome<Grant> {
  const chain = resolveForOperator(state, question, nowMs);
  if (chain.kind === 'refused') {
    return chain;
  }
  const { attachment, peerRef } = chain.value;
  const presentation = state.presence.presentations.get(attachment.attachmentRef);
  const isRegistered =
    presentation !== undefined &&
    presentation.number === question.presentation &&
    presentation.node === question.node &&
    presentation.peerRef === peerRef;
  return isRegistered ? chain : refused('PRESENTATION_ENDED');
}

/** The operator's chain. An agent is turned away before anything is looked up (law P3). */
function resolveForOperator(state: State, question: Question, nowMs: number): Outcome<Grant> {
  const { asker, node } = question;
  if (asker.role !== 'human-control') {
    return refused('ROLE_NOT_HUMAN_CONTROL', { callerRole: asker.role });
  }
  const peer = livingPeer(state.presence, asker, nowMs);
  if (peer.kind === 'refused') {
    return peer;
  }
  const worker = state.world.workers.get(question.workerRef);
  if (worker === undefined) {
    return refused('WORKER_UNKNOWN', { worker: question.workerRef });
  }
  if (worker.openedBy !== asker.name) {
    return refused('WORKER_NOT_OPENED_BY_CALLER', { worker: worker.name });
  }
  const standing = admitStanding(worker, question);
  if (standing.kind === 'refused') {
    return standing;
  }
  if (worker.node !== node) {
    return refused('NOT_CARRIED_HERE', { node });
  }
  return followOccupant(state, worker, peer.value);
}

/** Open, and of the generation the caller named. Refuses WORKER_CLOSED, WORKER_GENERATION_ADVANCED. */
export function admitStanding(worker: Worker, designation: Designation): Outcome<Worker> {
  if (worker.standing !== 'open') {
    return refused('WORKER_CLOSED', { worker: worker.name });
  }
  return admitGeneration(worker, designation);
}

/** Refuses WORKER_GENERATION_ADVANCED. */
export function admitGeneration(worker: Worker, designation: Designation): Outcome<Worker> {
  if (worker.workerGeneration !== designation.expectedGeneration) {
    return refused('WORKER_GENERATION_ADVANCED', {
      expectedGeneration: String(designation.expectedGeneration),
      currentGeneration: String(worker.workerGeneration),
    });
  }
  return granted(worker);
}

/** An occupant that is only awaited sits nowhere: until it is back nothing resolves. */
function followOccupant(state: State, worker: Worker, peer: Peer): Outcome<Grant> {
  const { occupancy } = worker;
  if (occupancy === undefined || !isSeated(state.presence, worker)) {
    return refused('LOCUS_NOT_OCCUPIED', { worker: worker.name });
  }
  return followTerminal(state, worker, occupancy, peer);
}

function followTerminal(
  state: State,
  worker: Worker,
  occupancy: Occupancy,
  peer: Peer,
): Outcome<Grant> {
  const { attachment } = occupancy;
  if (attachment === undefined || attachment.phase !== 'active') {
    return refused('CARRIER_NOT_ATTACHED', { worker: worker.name });
  }
  const host = state.presence.nodes.get(worker.node);
  if (host === undefined) {
    return refused('OWNER_UNREACHABLE', { node: worker.node });
  }
  if (host.dataIncarnation !== attachment.dataIncarnation) {
    return refused('CARRIER_ATTACHED_ELSEWHERE', { worker: worker.name });
  }
  return granted({ worker, occupancy, attachment, peerRef: peer.peerRef });
}

/** The agent's chain to its own terminal. */
function resolveForAgent(state: State, question: Question, nowMs: number): Outcome<Grant> {
  const seat = resolveSeat(state, question, nowMs);
  return seat.kind === 'refused'
    ? seat
    : followTerminal(state, seat.value.worker, seat.value.occupancy, seat.value.peer);
}

/** The seat a living agent has. */
export interface Seat {
  readonly worker: Worker;
  readonly occupancy: Occupancy;
  readonly peer: Peer;
}

/**
 * The worker at which the asking peer itself sits.
 *
 * Foreign and unknown workers are one to an agent: WORKER_NOT_YOURS. So is its own actor's worker at
 * which another run sits.
 */
export function resolveSeat(
  state: State,
  question: Designation & { readonly asker: Asker; readonly node: string },
  nowMs: number,
): Outcome<Seat> {
  const { asker, node } = question;
  if (asker.role !== 'agent') {
    return refused('ROLE_NOT_AGENT', { callerRole: asker.role });
  }
  const peer = livingPeer(state.presence, asker, nowMs);
  if (peer.kind === 'refused') {
    return peer;
  }
  const worker = state.world.workers.get(question.workerRef);
  if (worker === undefined || worker.actor !== asker.name) {
    return refused('WORKER_NOT_YOURS');
  }
  const standing = admitStanding(worker, question);
  if (standing.kind === 'refused') {
    return standing;
  }
  const { occupancy } = worker;
  if (occupancy === undefined || occupancy.peerRef !== peer.value.peerRef) {
    return refused('WORKER_NOT_YOURS');
  }
  if (worker.node !== node) {
    return refused('NOT_CARRIED_HERE', { node });
  }
  return granted({ worker, occupancy, peer: peer.value });
}
