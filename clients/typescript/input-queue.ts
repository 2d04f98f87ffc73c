/**
 * Input on its way to a terminal: one frame is out at a time, and only what was not accepted goes
 * again, so that nothing is ever written twice or skipped (law B5).
 *
 * Invariant I1 of this file: acceptedSeq <= sentSeq <= queuedSeq, and `sentSeq` falls back to
 * `acceptedSeq` only when the rest of a frame was refused.
 */
export interface InputQueue {
  /** Next byte the terminal has not been given. */
  readonly acceptedSeq: bigint;
  /** Next byte to be sent. */
  readonly sentSeq: bigint;
  /** Bytes from `acceptedSeq` on. */
  readonly bytes: Buffer;
}

/** A frame of this size is never interleaved with another writer's; larger ones are refused. */
export const INPUT_FRAME_BYTES = 4096;

export const emptyInput: InputQueue = { acceptedSeq: 0n, sentSeq: 0n, bytes: Buffer.alloc(0) };

/** One past the last byte given to the queue. */
export function queuedSeq(queue: InputQueue): bigint {
  return queue.acceptedSeq + BigInt(queue.bytes.length);
}

export function queued(queue: InputQueue, bytes: Buffer): InputQueue {
  return { ...queue, bytes: Buffer.concat([queue.bytes, bytes]) };
}

/** The frame to send now; undefined while one is out or nothing waits. */
export function nextInput(queue: InputQueue): { seq: bigint; payload: Buffer } | undefined {
  if (queue.sentSeq > queue.acceptedSeq || queue.bytes.length === 0) {
    return undefined;
  }
  return { seq: queue.acceptedSeq, payload: queue.bytes.subarray(0, INPUT_FRAME_BYTES) };
}

export function inputSent(queue: InputQueue, payload: Buffer): InputQueue {
  return { ...queue, sentSeq: queue.acceptedSeq + BigInt(payload.length) };
}

/** The terminal has been given everything before `nextSeq`. A repeated or impossible one changes nothing. */
export function inputAccepted(queue: InputQueue, nextSeq: bigint): InputQueue {
  if (nextSeq <= queue.acceptedSeq || nextSeq > queue.sentSeq) {
    return queue;
  }
  const bytes = queue.bytes.subarray(Number(nextSeq - queue.acceptedSeq));
  return { ...queue, acceptedSeq: nextSeq, bytes };
}

/** What was out and not accepted will not be written: it is to be sent again. */
export function inputRefused(queue: InputQueue): InputQueue {
  return { ...queue, sentSeq: queue.acceptedSeq };
}
