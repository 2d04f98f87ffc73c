/** Replies that show the worker as a command left it. */
import type { Worker as WorkerMessage } from '#gen/wheelhouse/authority/v1/authority.js';
import { bug } from '#kernel/bug.js';
import { andThen, granted, type Outcome } from '#kernel/outcome.js';
import type { WorkerRef } from '#kernel/refs.js';
import type { Settled } from '../domain/deciding.js';
import type { State } from '../domain/state.js';
import { fromWorker } from './wire.js';

export function settledWorker(
  outcome: Outcome<Settled>,
  workerRef: WorkerRef,
): Outcome<{ worker: WorkerMessage }> {
  return andThen(outcome, ({ state }) => granted({ worker: shownWorker(state, workerRef) }));
}

/** A worker that a command has just named. */
export function shownWorker(state: State, workerRef: WorkerRef): WorkerMessage {
  const worker = state.world.workers.get(workerRef) ?? bug('a settled worker is not in the world');
  return fromWorker(state, worker);
}
