/**
 * The agent's own reading of its terminal: a stepper.
 *
 * The agent owns what it reads, so its output is always covered and it may hold its own terminal
 * without limit. Its END comes last: after every presentation has had its own, so that the
 * operator's last look is not cut short by the agent's leaving.
 */
import { assertNever } from '#kernel/bug.js';
import type { CloseReasonName } from '#kernel/refusal.js';
import type { Step } from '#kernel/stepper.js';
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
} from './output-reader.js';
import type { Exit } from './terminal.js';

export interface Possession {
  readonly reader: OutputReader;
  readonly frameBytesMax: number;
  /** A headless possession is told nothing but the end. */
  readonly isHeadless: boolean;
  /** Whether nothing else hangs on the terminal any more, so that the end may be told. */
  readonly mayEnd: boolean;
  readonly closed: CloseReasonName | undefined;
}

export type PossessionInput =
  | { readonly kind: 'progressed'; readonly producedSeq: bigint; readonly end: Exit | undefined }
  | { readonly kind: 'confirmed' }
  | { readonly kind: 'acked'; readonly nextSeq: bigint }
  | { readonly kind: 'resized'; readonly mark: GeometryMark }
  | { readonly kind: 'may-end' }
  | { readonly kind: 'ended'; readonly reason: CloseReasonName };

export type PossessionEffect =
  | { readonly kind: 'hand-over'; readonly handover: Handover }
  | { readonly kind: 'close'; readonly reason: CloseReasonName };

type PossessionStep = Step<Possession, PossessionEffect>;

export interface PossessionTerms {
  readonly windowBytes: number;
  readonly frameBytesMax: number;
  readonly isHeadless: boolean;
}

/** A possession reads from the first byte on: it was there before the program. */
export function openPossession(terms: PossessionTerms): Possession {
  return {
    reader: openReader(0n, terms.windowBytes),
    frameBytesMax: terms.frameBytesMax,
    isHeadless: terms.isHeadless,
    mayEnd: false,
    closed: undefined,
  };
}

export function stepPossession(possession: Possession, input: PossessionInput): PossessionStep {
  if (possession.closed !== undefined) {
    return { state: possession, effects: [] };
  }
  switch (input.kind) {
    case 'progressed':
      return proceed(withReader(possession, advance(possession, input.producedSeq, input.end)));
    case 'confirmed':
      return proceed(withReader(possession, confirmed(possession.reader)));
    case 'acked':
      return onAck(possession, input.nextSeq);
    case 'resized':
      return proceed(
        possession.isHeadless
          ? possession
          : withReader(possession, marked(possession.reader, input.mark)),
      );
    case 'may-end':
      return proceed(mayEnd(possession));
    case 'ended':
      return close(possession, input.reason);
    default:
      return assertNever(input);
  }
}

/** First position the agent's reader still needs kept. */
export function neededSeq(possession: Possession): bigint {
  return possession.reader.window.sentSeq;
}

function advance(possession: Possession, producedSeq: bigint, end: Exit | undefined): OutputReader {
  const reader = covered(
    produced(possession.reader, producedSeq, end),
    producedSeq,
    possession.mayEnd,
  );
  if (!possession.isHeadless) {
    return reader;
  }
  const window = { ...reader.window, ackedSeq: producedSeq, sentSeq: producedSeq };
  return { ...reader, window };
}

function mayEnd(possession: Possession): Possession {
  const { reader } = possession;
  return { ...possession, mayEnd: true, reader: covered(reader, reader.coveredSeq, true) };
}

function onAck(possession: Possession, nextSeq: bigint): PossessionStep {
  const reader = taken(possession.reader, nextSeq);
  return reader === undefined
    ? close(possession, 'PROTOCOL_VIOLATION')
    : proceed(withReader(possession, reader));
}

function proceed(possession: Possession): PossessionStep {
  const { reader, handovers } = handOverDue(possession.reader, possession.frameBytesMax);
  const effects: PossessionEffect[] = handovers.map((handover) => ({
    kind: 'hand-over',
    handover,
  }));
  if (reader.isEndTold) {
    const { state, effects: last } = close({ ...possession, reader }, 'ENDED');
    return { state, effects: [...effects, ...last] };
  }
  return { state: { ...possession, reader }, effects };
}

function close(possession: Possession, reason: CloseReasonName): PossessionStep {
  return { state: { ...possession, closed: reason }, effects: [{ kind: 'close', reason }] };
}

function withReader(possession: Possession, reader: OutputReader): Possession {
  return { ...possession, reader };
}
