/**
 * One operator's look at a terminal: a stepper.
 *
 *   observing ──(refused, departed, fenced, hold spent, ack beyond sent, END told …)──► closed
 *
 * Closed is final: whatever comes later does nothing, and nothing revives it (law P5).
 *
 * Release rule (law P6): a frame is handed over only from what is covered, and `ask` carries the
 * positions that were already read when it was asked. An answer covers exactly those, never more.
 */
import { assertNever } from '#kernel/bug.js';
import type { Outcome } from '#kernel/outcome.js';
import type { CloseReasonName } from '#kernel/refusal.js';
import type { Step } from '#kernel/stepper.js';
import { type Basis, departure, type Grant } from './basis.js';
import { closeReasonOf } from './close-reason.js';
import {
  confirmed,
  covered,
  type GeometryMark,
  type Handover,
  handOverDue,
  marked,
  type OutputReader,
  openReader,
  produced,
  taken,
  withheld,
} from './output-reader.js';
import { isFull } from './send-window.js';
import type { Exit } from './terminal.js';

/** What a question was asked about. */
export interface Coverage {
  /** First position not yet read when it was asked. */
  readonly uptoSeq: bigint;
  /** Whether END was known when it was asked. */
  readonly coversEnd: boolean;
}

export interface Presentation {
  readonly basis: Basis;
  readonly reader: OutputReader;
  readonly frameBytesMax: number;
  /** The question on its way, if any: one at a time. */
  readonly asking: Coverage | undefined;
  /** Whether the terminal cannot be read further because this reader has not taken its output. */
  readonly isHolding: boolean;
  readonly isAuthorityAway: boolean;
  readonly closed: CloseReasonName | undefined;
}

export type PresentationInput =
  /** The terminal was read further, or has reached END. */
  | { readonly kind: 'progressed'; readonly producedSeq: bigint; readonly end: Exit | undefined }
  /** The terminal waits for this reader, or does not any more. */
  | { readonly kind: 'blocking'; readonly isBlocking: boolean }
  | { readonly kind: 'answered'; readonly answer: Outcome<Grant> }
  /** The question on its way will not be answered. */
  | { readonly kind: 'authority-lost' }
  /** The transport has taken the frame. */
  | { readonly kind: 'confirmed' }
  /** What was to be handed over was not: a fence was heard since the answer. */
  | { readonly kind: 'withheld'; readonly handover: Handover }
  | { readonly kind: 'acked'; readonly nextSeq: bigint }
  | { readonly kind: 'resized'; readonly mark: GeometryMark }
  /** The terminal has been held for as long as it may be: for how many ms, 0 where it may not be at all. */
  | { readonly kind: 'hold-spent'; readonly limitMs: number }
  | { readonly kind: 'ended'; readonly reason: CloseReasonName };

export type PresentationEffect =
  | { readonly kind: 'ask'; readonly coverage: Coverage }
  | { readonly kind: 'hand-over'; readonly handover: Handover }
  | { readonly kind: 'hold-began' }
  | { readonly kind: 'hold-ended' }
  | { readonly kind: 'close'; readonly reason: CloseReasonName };

type PresentationStep = Step<Presentation, PresentationEffect>;

export interface PresentationTerms {
  readonly basis: Basis;
  readonly atSeq: bigint;
  readonly windowBytes: number;
  readonly frameBytesMax: number;
}

/** A look that begins at the current position. */
export function openPresentation(terms: PresentationTerms): Presentation {
  return {
    basis: terms.basis,
    reader: openReader(terms.atSeq, terms.windowBytes),
    frameBytesMax: terms.frameBytesMax,
    asking: undefined,
    isHolding: false,
    isAuthorityAway: false,
    closed: undefined,
  };
}

export function stepPresentation(
  presentation: Presentation,
  input: PresentationInput,
): PresentationStep {
  if (presentation.closed !== undefined) {
    return { state: presentation, effects: [] };
  }
  switch (input.kind) {
    case 'progressed':
      return proceed(
        withReader(presentation, produced(presentation.reader, input.producedSeq, input.end)),
      );
    case 'blocking':
      return onBlocking(presentation, input.isBlocking);
    case 'answered':
      return onAnswer(presentation, input.answer);
    case 'authority-lost':
      return proceed({ ...presentation, asking: undefined, isAuthorityAway: true });
    case 'confirmed':
      return proceed(withReader(presentation, confirmed(presentation.reader)));
    case 'withheld':
      return close(
        withReader(presentation, withheld(presentation.reader, input.handover)),
        'RELEASED',
      );
    case 'acked':
      return onAck(presentation, input.nextSeq);
    case 'resized':
      return proceed(withReader(presentation, marked(presentation.reader, input.mark)));
    case 'hold-spent':
      return close(presentation, whoHeld(presentation, input.limitMs));
    case 'ended':
      return close(presentation, input.reason);
    default:
      return assertNever(input);
  }
}

function onBlocking(presentation: Presentation, isBlocking: boolean): PresentationStep {
  return {
    state: { ...presentation, isHolding: isBlocking },
    effects: [{ kind: isBlocking ? 'hold-began' : 'hold-ended' }],
  };
}

function onAnswer(presentation: Presentation, answer: Outcome<Grant>): PresentationStep {
  if (answer.kind === 'refused') {
    return close(presentation, closeReasonOf(answer.refusal.reason));
  }
  const departed = departure(presentation.basis, answer.value);
  if (departed !== undefined) {
    return close(presentation, departed);
  }
  const { asking, reader } = presentation;
  return proceed({
    ...presentation,
    asking: undefined,
    reader: asking === undefined ? reader : covered(reader, asking.uptoSeq, asking.coversEnd),
  });
}

/**
 * A reader that has room left waits for authority, not authority for it. Where nobody was waited for,
 * nothing can be said of authority: the terminal was faster, which is what such a reader asked to be told.
 */
function whoHeld(
  { isAuthorityAway, asking, reader }: Presentation,
  limitMs: number,
): CloseReasonName {
  const awaitsAnswer =
    limitMs > 0 && asking !== undefined && reader.window.sentSeq === reader.coveredSeq;
  return isAuthorityAway || awaitsAnswer ? 'AUTHORITY_UNREACHABLE' : 'LAGGING';
}

function onAck(presentation: Presentation, nextSeq: bigint): PresentationStep {
  const reader = taken(presentation.reader, nextSeq);
  return reader === undefined
    ? close(presentation, 'PROTOCOL_VIOLATION')
    : proceed(withReader(presentation, reader));
}

/**
 * Hands over what may be, and asks about what has been read since.
 *
 * Nothing while authority is away, not even what is covered (law E1): whether it may still be seen is
 * for authority to say when it is back, and it ends this look then.
 */
function proceed(presentation: Presentation): PresentationStep {
  if (presentation.isAuthorityAway) {
    return { state: presentation, effects: [] };
  }
  const { reader, handovers } = handOverDue(presentation.reader, presentation.frameBytesMax);
  const effects: PresentationEffect[] = handovers.map((handover) => ({
    kind: 'hand-over',
    handover,
  }));
  if (reader.isEndTold) {
    const { state, effects: last } = close({ ...presentation, reader }, 'ENDED');
    return { state, effects: [...effects, ...last] };
  }
  const asking = presentation.asking ?? nextQuestion(reader);
  if (asking !== undefined && presentation.asking === undefined) {
    effects.push({ kind: 'ask', coverage: asking });
  }
  return { state: { ...presentation, reader, asking }, effects };
}

/**
 * What is worth asking about now. Nothing while the window is full: by the time the reader has made
 * room a newer answer is due anyway.
 */
function nextQuestion(reader: OutputReader): Coverage | undefined {
  const hasNews =
    reader.producedSeq > reader.coveredSeq || (reader.end !== undefined && !reader.isEndCovered);
  return hasNews && !isFull(reader.window)
    ? { uptoSeq: reader.producedSeq, coversEnd: reader.end !== undefined }
    : undefined;
}

function close(presentation: Presentation, reason: CloseReasonName): PresentationStep {
  const effects: PresentationEffect[] = [{ kind: 'close', reason }];
  return {
    state: { ...presentation, closed: reason, isHolding: false },
    effects: presentation.isHolding ? [{ kind: 'hold-ended' }, ...effects] : effects,
  };
}

function withReader(presentation: Presentation, reader: OutputReader): Presentation {
  return { ...presentation, reader };
}
