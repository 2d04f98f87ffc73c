/**
 * What one reader of output has received, taken and acknowledged, in byte positions.
 *
 * Invariant A1: ackedSeq <= takenSeq <= receivedSeq, and all three only grow.
 */
export interface AckLedger {
  /** Next byte expected: a frame that begins anywhere else breaks the stream. */
  readonly receivedSeq: bigint;
  /** Next byte the consumer has not taken. */
  readonly takenSeq: bigint;
  /** Next byte not yet acknowledged. */
  readonly ackedSeq: bigint;
  /** Acknowledged at the latest when this many bytes are taken: a quarter of the window. */
  readonly stepBytes: bigint;
}

/**
 * A taken frame shorter than this is acknowledged at once: the terminal is not flooding, and the
 * sender's positions stay exact without a timer. Half of the smallest frame a flood is cut into.
 */
const EAGER_BYTES = 16 * 1024;

export function openLedger(outSeq: bigint, windowBytes: number): AckLedger {
  return {
    receivedSeq: outSeq,
    takenSeq: outSeq,
    ackedSeq: outSeq,
    stepBytes: BigInt(Math.ceil(windowBytes / 4)),
  };
}

/** Undefined for a gap or a repeat: the bytes after it could not be told apart from the real ones. */
export function received(ledger: AckLedger, seq: bigint, bytes: number): AckLedger | undefined {
  return seq === ledger.receivedSeq ? { ...ledger, receivedSeq: seq + BigInt(bytes) } : undefined;
}

/** The consumer has taken everything received. */
export function taken(ledger: AckLedger): AckLedger {
  return { ...ledger, takenSeq: ledger.receivedSeq };
}

/** Whether the sender should be told now, the frame taken last having this many bytes. */
export function isAckDue(ledger: AckLedger, lastBytes: number): boolean {
  const unacked = ledger.takenSeq - ledger.ackedSeq;
  return unacked >= ledger.stepBytes || (unacked > 0n && lastBytes < EAGER_BYTES);
}

/** The sender has been told everything taken. */
export function acked(ledger: AckLedger): AckLedger {
  return { ...ledger, ackedSeq: ledger.takenSeq };
}
