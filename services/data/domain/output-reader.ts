/**
 * One reader's place in a terminal's output: what may be handed to it next, and in which order.
 *
 * Frames, sizes and the end leave in the order of their positions, one at a time: the next when the
 * transport has taken the one before (law P6). What may be sent is what is *covered*: for a
 * presentation by a grant that was asked for after the bytes were read, for a possession always.
 */
import { acked, limitSeq, openWindow, type SendWindow, sent } from './send-window.js';
import type { Exit, Geometry } from './terminal.js';

/** A size that holds from a position of the output on. */
export interface GeometryMark {
  readonly outSeq: bigint;
  readonly geometry: Geometry;
}

export interface OutputReader {
  readonly window: SendWindow;
  /** First position that has not been read from the terminal. */
  readonly producedSeq: bigint;
  /** First position that may not be sent yet. */
  readonly coveredSeq: bigint;
  /** Sizes still to be told, in order. */
  readonly marks: readonly GeometryMark[];
  /** How the program ended, once all it wrote has been read. */
  readonly end: Exit | undefined;
  /** Whether the end may be told. */
  readonly isEndCovered: boolean;
  readonly isEndTold: boolean;
  /** Whether the transport still has the last frame to take. */
  readonly isHandingOver: boolean;
}

/** What is to be handed over next. */
export type Handover =
  | { readonly kind: 'frame'; readonly fromSeq: bigint; readonly lengthBytes: number }
  | { readonly kind: 'geometry'; readonly mark: GeometryMark }
  | { readonly kind: 'end'; readonly outSeq: bigint; readonly exit: Exit };

/** Sizes a reader that lags may still be told one by one; older ones give way to newer. */
const MARKS_MAX = 64;

/** A reader that starts at the current position: nothing earlier is shown (law B4). */
export function openReader(atSeq: bigint, windowBytes: number): OutputReader {
  return {
    window: openWindow(atSeq, windowBytes),
    producedSeq: atSeq,
    coveredSeq: atSeq,
    marks: [],
    end: undefined,
    isEndCovered: false,
    isEndTold: false,
    isHandingOver: false,
  };
}

/** The terminal has been read further. */
export function produced(
  reader: OutputReader,
  producedSeq: bigint,
  end: Exit | undefined,
): OutputReader {
  return { ...reader, producedSeq, end };
}

/** Output before `coveredSeq` may be sent, and the end as well if it was known then. */
export function covered(
  reader: OutputReader,
  coveredSeq: bigint,
  coversEnd: boolean,
): OutputReader {
  return { ...reader, coveredSeq, isEndCovered: coversEnd };
}

/** Undefined when the reader claims bytes it was never sent. */
export function taken(reader: OutputReader, nextSeq: bigint): OutputReader | undefined {
  const window = acked(reader.window, nextSeq);
  return window === undefined ? undefined : { ...reader, window };
}

/** The terminal has another size from a position on. */
export function marked(reader: OutputReader, mark: GeometryMark): OutputReader {
  const kept = reader.marks.length < MARKS_MAX ? reader.marks : reader.marks.slice(0, -1);
  return { ...reader, marks: [...kept, mark] };
}

/** What may be handed over now; undefined when there is nothing, or something is still on its way. */
function nextHandover(reader: OutputReader, frameBytesMax: number): Handover | undefined {
  if (reader.isHandingOver) {
    return undefined;
  }
  const { sentSeq } = reader.window;
  const [mark] = reader.marks;
  if (mark !== undefined && mark.outSeq <= sentSeq) {
    return { kind: 'geometry', mark };
  }
  const lengthBytes = sendable(reader, mark, frameBytesMax);
  if (lengthBytes > 0) {
    return { kind: 'frame', fromSeq: sentSeq, lengthBytes };
  }
  const isDone = reader.isEndCovered && !reader.isEndTold && sentSeq === reader.producedSeq;
  return isDone && reader.end !== undefined
    ? { kind: 'end', outSeq: sentSeq, exit: reader.end }
    : undefined;
}

function sendable(
  reader: OutputReader,
  mark: GeometryMark | undefined,
  frameBytesMax: number,
): number {
  let stopSeq = least(reader.coveredSeq, limitSeq(reader.window));
  if (mark !== undefined) {
    stopSeq = least(stopSeq, mark.outSeq);
  }
  return Math.min(Number(stopSeq - reader.window.sentSeq), frameBytesMax);
}

/** The reader after a handover was given to the transport. */
function handedOver(reader: OutputReader, handover: Handover): OutputReader {
  switch (handover.kind) {
    case 'frame': {
      const uptoSeq = handover.fromSeq + BigInt(handover.lengthBytes);
      return { ...reader, window: sent(reader.window, uptoSeq), isHandingOver: true };
    }
    case 'geometry':
      return { ...reader, marks: reader.marks.slice(1) };
    case 'end':
      return { ...reader, isEndTold: true };
  }
}

/** Everything that may be handed over now, in order, and the reader after it. */
export function handOverDue(
  reader: OutputReader,
  frameBytesMax: number,
): { readonly reader: OutputReader; readonly handovers: readonly Handover[] } {
  const handovers: Handover[] = [];
  let after = reader;
  for (
    let due = nextHandover(after, frameBytesMax);
    due !== undefined;
    due = nextHandover(after, frameBytesMax)
  ) {
    handovers.push(due);
    after = handedOver(after, due);
  }
  return { reader: after, handovers };
}

/** The reader after a handover that was not made: what it says it sent is what left (law B2). */
export function withheld(reader: OutputReader, handover: Handover): OutputReader {
  return handover.kind === 'frame'
    ? { ...reader, window: { ...reader.window, sentSeq: handover.fromSeq }, isHandingOver: false }
    : reader;
}

/** The transport has taken the frame. */
export function confirmed(reader: OutputReader): OutputReader {
  return { ...reader, isHandingOver: false };
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
