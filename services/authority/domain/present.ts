/** Registers a look at a terminal: one for each terminal, in memory, gone with whatever it hangs on. */
import { granted, type Outcome, refused } from '#kernel/outcome.js';
import type { Effect } from './effect.js';
import type { Presence, Presentation } from './presence.js';
import { type Grant, type Question, resolve } from './resolve.js';
import type { State } from './state.js';

/** A wish to open a presentation. */
export type PresentQuestion = Extract<Question, { readonly operation: 'PRESENT' }> & {
  /** The number it will have on the node's stream; free there. */
  readonly presentation: bigint;
  /** Whether an older one of the same peer gives way. */
  readonly replace: boolean;
};

/** A registered presentation, and the fence of the one it replaced. */
export interface Presented {
  readonly grant: Grant;
  readonly presence: Presence;
  readonly effects: readonly Effect[];
}

/**
 * Follows the chain, then registers the presentation.
 *
 * Refuses as the chain does, then PRESENTATION_EXISTS unless the same peer asks to replace,
 * REQUEST_INVALID when the number is taken.
 */
export function present(
  state: State,
  question: PresentQuestion,
  nowMs: number,
): Outcome<Presented> {
  const chain = resolve(state, question, nowMs);
  if (chain.kind === 'refused') {
    return chain;
  }
  const { worker, attachment, peerRef } = chain.value;
  const older = state.presence.presentations.get(attachment.attachmentRef);
  if (older !== undefined && !(question.replace && older.peerRef === peerRef)) {
    return refused('PRESENTATION_EXISTS', { worker: worker.name });
  }
  if (isNumberTaken(state.presence, question)) {
    return refused('REQUEST_INVALID', { field: 'presentation', rule: 'a number that is free' });
  }
  const presentation: Presentation = {
    node: question.node,
    number: question.presentation,
    peerRef,
    workerRef: worker.workerRef,
    attachmentRef: attachment.attachmentRef,
  };
  const presentations = new Map(state.presence.presentations);
  presentations.set(attachment.attachmentRef, presentation);
  const presence = { ...state.presence, presentations };
  return granted({
    grant: chain.value,
    presence,
    effects: older === undefined ? [] : [replacedFence(older)],
  });
}

function isNumberTaken(presence: Presence, question: PresentQuestion): boolean {
  for (const { node, number } of presence.presentations.values()) {
    if (node === question.node && number === question.presentation) {
      return true;
    }
  }
  return false;
}

function replacedFence(older: Presentation): Effect {
  return {
    kind: 'fence',
    node: older.node,
    workerRef: older.workerRef,
    scope: 'PRESENTATIONS',
    reason: 'REPLACED',
  };
}
