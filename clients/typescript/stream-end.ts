/** How a look or a possession ended, as its client knows it. */
import type { Closed, Exit } from '#gen/wheelhouse/data/v1/data.js';
import { type CloseReasonName, closeReasonName } from '#kernel/refusal.js';

/** How the program in the terminal ended. */
export type ProgramExit =
  | { readonly kind: 'code'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: number };

/** A reason came, with positions. */
export interface ClosedEnd {
  readonly kind: 'closed';
  readonly reason: CloseReasonName;
  /** Next byte that was not acknowledged. */
  readonly ackedSeq: bigint;
  /** Next byte the sender had not sent. */
  readonly sentSeq: bigint;
  /** Next byte the terminal had not produced. */
  readonly producedSeq: bigint;
  readonly exit: ProgramExit | undefined;
}

export type StreamEnd =
  | ClosedEnd
  /** The reader left. Positions are its own; the sender's, when it still told them, stand beside. */
  | {
      readonly kind: 'detached';
      readonly takenSeq: bigint;
      readonly sender: { readonly sentSeq: bigint; readonly producedSeq: bigint } | undefined;
    }
  /** The transport broke before a reason came: the reader has every byte before `takenSeq` and no other. */
  | { readonly kind: 'lost'; readonly takenSeq: bigint; readonly cause: Error };

/** Undefined for a reason that this build does not know. */
export function endOf(closed: Closed): ClosedEnd | undefined {
  const reason = closeReasonName(closed.reason);
  if (reason === undefined) {
    return undefined;
  }
  const { ackedSeq, sentSeq, producedSeq } = closed;
  return { kind: 'closed', reason, ackedSeq, sentSeq, producedSeq, exit: exitOf(closed.exit) };
}

export function exitOf(exit: Exit | undefined): ProgramExit | undefined {
  switch (exit?.how?.$case) {
    case 'code':
      return { kind: 'code', code: exit.how.value };
    case 'signal':
      return { kind: 'signal', signal: exit.how.value };
    case undefined:
      return undefined;
  }
}
