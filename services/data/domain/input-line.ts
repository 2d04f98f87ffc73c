/**
 * One writer's input on its way into a terminal: a stepper.
 *
 * Three positions, each at most the one after it (law B5): what the terminal has been given is
 * *accepted*, what this line holds ends at *received*. Only acceptance is acknowledged. Input at an
 * accepted position is a no-op and acknowledged again; a gap is refused; what cannot be written in
 * time is refused from the first byte that was not, and the line goes on from there.
 */
import { assertNever } from '#kernel/bug.js';
import { type Outcome, refused } from '#kernel/outcome.js';
import type { Refusal } from '#kernel/refusal.js';
import type { Step } from '#kernel/stepper.js';
import type { Grant } from './basis.js';

export interface InputLine {
  /** Next byte the terminal has not been given. */
  readonly acceptedSeq: bigint;
  /** Received and not written: the first is the one being written. */
  readonly waiting: readonly Uint8Array[];
  readonly waitingBytes: number;
  /** How many of the waiting frames a grant allows to be written. */
  readonly allowedCount: number;
  /** How many were waiting when the question on its way was asked; 0 when none is. */
  readonly askedCount: number;
  /** Number of the newest question: the answer to an older one says nothing about what waits now. */
  readonly question: number;
  /** Whether the terminal takes nothing at the moment. */
  readonly isBlocked: boolean;
  /** Whether the writer was told to wait. */
  readonly isPaused: boolean;
}

export interface InputLimits {
  /** Largest frame, in bytes: never interleaved with another writer's. */
  readonly inputAtomMax: number;
  /** Received and not written, in bytes, before the writer is made to wait. */
  readonly inputWaitingBytesMax: number;
  /** The same in frames: a frame of one byte costs more than its byte. */
  readonly inputWaitingFramesMax: number;
}

export type LineInput =
  | { readonly kind: 'frame'; readonly seq: bigint; readonly payload: Uint8Array }
  | { readonly kind: 'answered'; readonly question: number; readonly answer: Outcome<Grant> }
  /** The terminal took this many bytes of the first waiting frame. */
  | { readonly kind: 'wrote'; readonly bytes: number }
  | { readonly kind: 'writable' }
  /** Blocked for as long as a frame may be. */
  | { readonly kind: 'block-spent' };

export type LineEffect =
  | { readonly kind: 'ask'; readonly question: number }
  /** To be answered with `wrote`. */
  | { readonly kind: 'write'; readonly payload: Uint8Array }
  | { readonly kind: 'ack'; readonly nextSeq: bigint }
  | { readonly kind: 'refuse'; readonly refusal: Refusal }
  | { readonly kind: 'block-began' }
  | { readonly kind: 'block-ended' }
  | { readonly kind: 'pause' }
  | { readonly kind: 'resume' };

type LineStep = Step<InputLine, LineEffect>;

export const emptyLine: InputLine = {
  acceptedSeq: 0n,
  waiting: [],
  waitingBytes: 0,
  allowedCount: 0,
  askedCount: 0,
  question: 0,
  isBlocked: false,
  isPaused: false,
};

export function stepLine(line: InputLine, input: LineInput, limits: InputLimits): LineStep {
  switch (input.kind) {
    case 'frame':
      return onFrame(line, input, limits);
    case 'answered':
      return input.question === line.question ? onAnswer(line, input.answer) : still(line);
    case 'wrote':
      return onWrote(line, input.bytes, limits);
    case 'writable':
      return onWritable(line);
    case 'block-spent':
      return line.isBlocked
        ? abandon(line, {
            reason: 'TERMINAL_NOT_READING',
            facts: { acceptedSeq: String(line.acceptedSeq) },
          })
        : still(line);
    default:
      return assertNever(input);
  }
}

/** Next byte this line has not received. */
export function receivedSeq(line: InputLine): bigint {
  return line.acceptedSeq + BigInt(line.waitingBytes);
}

function onFrame(
  line: InputLine,
  frame: Extract<LineInput, { kind: 'frame' }>,
  limits: InputLimits,
): LineStep {
  const fresh = freshPart(line, frame, limits);
  if (fresh.kind === 'refused') {
    return { state: line, effects: [{ kind: 'refuse', refusal: fresh.refusal }] };
  }
  if (fresh.value.length === 0) {
    return { state: line, effects: [{ kind: 'ack', nextSeq: line.acceptedSeq }] };
  }
  const waitingBytes = line.waitingBytes + fresh.value.length;
  const isMuch =
    waitingBytes >= limits.inputWaitingBytesMax ||
    line.waiting.length + 1 >= limits.inputWaitingFramesMax;
  const mustWait = isMuch && !line.isPaused;
  const next = {
    ...line,
    waiting: [...line.waiting, fresh.value],
    waitingBytes,
    isPaused: line.isPaused || mustWait,
  };
  const { state, effects } = ask(next);
  return { state, effects: mustWait ? [...effects, { kind: 'pause' }] : effects };
}

/** The bytes of a frame that this line has not received yet. */
function freshPart(
  line: InputLine,
  { seq, payload }: { readonly seq: bigint; readonly payload: Uint8Array },
  limits: InputLimits,
): Outcome<Uint8Array> {
  if (payload.length > limits.inputAtomMax) {
    const rule = `at most ${limits.inputAtomMax} bytes`;
    return refused('REQUEST_INVALID', { field: 'input.payload', rule });
  }
  const expectedSeq = receivedSeq(line);
  if (seq > expectedSeq) {
    return refused('INPUT_GAP', { expectedSeq: String(expectedSeq), givenSeq: String(seq) });
  }
  const known = expectedSeq - seq;
  const value =
    known >= BigInt(payload.length) ? new Uint8Array() : payload.subarray(Number(known));
  return { kind: 'granted', value };
}

/** One question at a time; it speaks for what was waiting when it was asked. */
function ask(line: InputLine): LineStep {
  if (line.askedCount > 0 || line.waiting.length <= line.allowedCount) {
    return still(line);
  }
  const question = line.question + 1;
  return {
    state: { ...line, question, askedCount: line.waiting.length },
    effects: [{ kind: 'ask', question }],
  };
}

function onAnswer(line: InputLine, answer: Outcome<Grant>): LineStep {
  if (answer.kind === 'refused') {
    return abandon(line, answer.refusal);
  }
  const isIdle = line.allowedCount === 0;
  const next = { ...line, allowedCount: line.askedCount, askedCount: 0 };
  return isIdle ? writeFirst(next) : still(next);
}

function writeFirst(line: InputLine): LineStep {
  const [payload] = line.waiting;
  return payload === undefined || line.allowedCount === 0
    ? ask(line)
    : { state: line, effects: [{ kind: 'write', payload }] };
}

function onWrote(line: InputLine, bytes: number, limits: InputLimits): LineStep {
  const [first = new Uint8Array(), ...rest] = line.waiting;
  const isWhole = bytes === first.length;
  const acceptedSeq = line.acceptedSeq + BigInt(bytes);
  const waitingBytes = line.waitingBytes - bytes;
  const mayResume =
    line.isPaused &&
    waitingBytes < limits.inputWaitingBytesMax / 2 &&
    line.waiting.length < limits.inputWaitingFramesMax / 2;
  const next: InputLine = {
    ...line,
    acceptedSeq,
    waiting: isWhole ? rest : [first.subarray(bytes), ...rest],
    waitingBytes,
    allowedCount: isWhole ? line.allowedCount - 1 : line.allowedCount,
    askedCount: line.askedCount > 0 && isWhole ? line.askedCount - 1 : line.askedCount,
    isBlocked: !isWhole,
    isPaused: line.isPaused && !mayResume,
  };
  const effects: LineEffect[] = bytes > 0 ? [{ kind: 'ack', nextSeq: acceptedSeq }] : [];
  if (mayResume) {
    effects.push({ kind: 'resume' });
  }
  if (next.isBlocked !== line.isBlocked) {
    effects.push({ kind: next.isBlocked ? 'block-began' : 'block-ended' });
  }
  const { state, effects: more } = isWhole ? writeFirst(next) : still(next);
  return { state, effects: [...effects, ...more] };
}

function onWritable(line: InputLine): LineStep {
  return line.isBlocked ? writeFirst(line) : still(line);
}

/** Drops what has not been written; the line goes on from the first byte that was not. */
function abandon(line: InputLine, refusal: Refusal): LineStep {
  const effects: LineEffect[] = [{ kind: 'refuse', refusal }];
  if (line.isBlocked) {
    effects.unshift({ kind: 'block-ended' });
  }
  if (line.isPaused) {
    effects.push({ kind: 'resume' });
  }
  const state = { ...emptyLine, acceptedSeq: line.acceptedSeq, question: line.question + 1 };
  return { state, effects };
}

function still(line: InputLine): LineStep {
  return { state: line, effects: [] };
}
