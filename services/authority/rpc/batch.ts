/**
 * Answers one batch of questions, from one state.
 *
 * Presentations are opened first and everything is answered after: so each answer is given from the
 * state that the batch's epoch names, and none is older than a fence that a replacement sent.
 */
import type { Question as QuestionMessage } from '#gen/wheelhouse/authority/v1/authority.js';
import { Operation } from '#gen/wheelhouse/authority/v1/authority.js';
import { type Outcome, refused } from '#kernel/outcome.js';
import type { Deciding } from '../domain/deciding.js';
import type { Asker } from '../domain/presence.js';
import { type Grant, type Question, resolve } from '../domain/resolve.js';
import { toDesignation } from './wire.js';

/** A node's question with the caller its number stands for. */
export interface Asked {
  readonly message: QuestionMessage;
  readonly asker: Asker;
}

/** One answer for each question, in their order. */
export function answerBatch(
  authority: Deciding,
  node: string,
  asked: readonly Asked[],
  nowMs: number,
): Outcome<Grant>[] {
  const opened = asked.map((each) => openPresentation(authority, node, each));
  const { state } = authority;
  return asked.map((each, position) => {
    const refusal = opened[position];
    if (refusal?.kind === 'refused') {
      return refusal;
    }
    const question = toQuestion(node, each);
    return question === undefined ? unknownOperation : resolve(state, question, nowMs);
  });
}

const unknownOperation = refused('REQUEST_INVALID', {
  field: 'operation',
  rule: 'one of this contract',
});

/** Undefined for every other operation. */
function openPresentation(
  authority: Deciding,
  node: string,
  { message, asker }: Asked,
): Outcome<Grant> | undefined {
  if (message.operation !== Operation.PRESENT) {
    return undefined;
  }
  const { presentation, replace } = message;
  const designation = toDesignation(message);
  return authority.present({
    operation: 'PRESENT',
    node,
    asker,
    ...designation,
    presentation,
    replace,
  });
}

/** An opened presentation is asked about like one that goes on: a later one of the batch may have replaced it. */
function toQuestion(node: string, { message, asker }: Asked): Question | undefined {
  const named = { node, asker, ...toDesignation(message) };
  switch (message.operation) {
    case Operation.PRESENT:
    case Operation.OBSERVE:
      return { operation: 'OBSERVE', presentation: message.presentation, ...named };
    case Operation.AGENT_INPUT:
      return { operation: 'AGENT_INPUT', ...named };
    case Operation.AGENT_RESIZE:
      return { operation: 'AGENT_RESIZE', ...named };
    case Operation.UNSPECIFIED:
      return undefined;
    default:
      return undefined;
  }
}
