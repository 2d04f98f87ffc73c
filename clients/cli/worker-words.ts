/** Workers in the words people and programs read. */
import { type Worker, WorkerState } from '#gen/wheelhouse/authority/v1/authority.js';
import type { Refusal } from '#kernel/refusal.js';
import type { Colours } from './colours.js';

const STATES: Readonly<Record<number, string>> = {
  [WorkerState.VACANT]: 'vacant',
  [WorkerState.RUNNING]: 'running',
  [WorkerState.WATCHED]: 'watched',
  [WorkerState.CLOSING]: 'closing',
  [WorkerState.CLOSED]: 'closed',
};

function stateWord(worker: Worker): string {
  return STATES[worker.state] ?? 'unknown';
}

/** Whether an agent is at work there. */
export function isAtWork(worker: Worker): boolean {
  return worker.state === WorkerState.RUNNING || worker.state === WorkerState.WATCHED;
}

/** Why everything may not simply be ended; undefined when nobody is at work. */
export function refusalToEnd(workers: readonly Worker[]): Refusal | undefined {
  const names = workers.filter(isAtWork).map(({ name }) => name);
  return names.length === 0
    ? undefined
    : { reason: 'AGENTS_RUNNING', facts: { workers: names.join(', ') } };
}

/** For `--json`. */
export function workerValue(worker: Worker): Record<string, unknown> {
  return {
    name: worker.name,
    state: stateWord(worker),
    actor: worker.actor,
    generation: Number(worker.workerGeneration),
    workspace: worker.workspace,
    driveAllowed: worker.driveAllowed,
    delegationAllowed: worker.delegationAllowed,
    openedBy: worker.openedBy,
    dataNode: worker.dataNode,
    workerRef: worker.workerRef,
  };
}

export function paintState(worker: Worker, colours: Colours): string {
  const word = stateWord(worker);
  switch (word) {
    case 'running':
    case 'watched':
      return colours.good(word);
    case 'closing':
      return colours.warn(word);
    case 'closed':
      return colours.dim(word);
    default:
      return word;
  }
}
