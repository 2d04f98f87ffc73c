/**
 * How far a sender may run ahead of its reader, in byte positions of one direction of one stream.
 *
 * Invariant W1: ackedSeq <= sentSeq <= ackedSeq + windowBytes. All positions only grow, so a
 * repeated or reordered ack changes nothing (law B1).
 */
export interface SendWindow {
  /** Next byte the reader has not yet taken. */
  readonly ackedSeq: bigint;
  /** Next byte to send. */
  readonly sentSeq: bigint;
  /** Bytes that may be sent and not taken. */
  readonly windowBytes: bigint;
}

/** A window that begins at a position: nothing before it is sent. */
export function openWindow(atSeq: bigint, windowBytes: number): SendWindow {
  return { ackedSeq: atSeq, sentSeq: atSeq, windowBytes: BigInt(windowBytes) };
}

/** First byte that may not be sent yet. */
export function limitSeq(window: SendWindow): bigint {
  return window.ackedSeq + window.windowBytes;
}

export function isFull(window: SendWindow): boolean {
  return window.sentSeq === limitSeq(window);
}

/** Bytes up to `uptoSeq` were handed to the transport. */
export function sent(window: SendWindow, uptoSeq: bigint): SendWindow {
  return { ...window, sentSeq: uptoSeq };
}

/** The reader has taken all before `nextSeq`. Undefined when it claims bytes it was never sent. */
export function acked(window: SendWindow, nextSeq: bigint): SendWindow | undefined {
  if (nextSeq > window.sentSeq) {
    return undefined;
  }
  return nextSeq > window.ackedSeq ? { ...window, ackedSeq: nextSeq } : window;
}
