import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  emptyInput,
  INPUT_FRAME_BYTES,
  inputAccepted,
  inputRefused,
  inputSent,
  nextInput,
  queued,
  queuedSeq,
} from './input-queue.js';

test('every byte is accepted once and in order, whatever is accepted in part, refused or repeated', () => {
  const answers = fc.array(
    fc.record({ part: fc.double({ min: 0, max: 1, noNaN: true }), refused: fc.boolean() }),
    { minLength: 1, maxLength: 20 },
  );
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 20_000 }), answers, (bytes, plan) => {
      let queue = queued(emptyInput, Buffer.from(bytes));
      const terminal: Buffer[] = [];
      let turn = 0;
      for (let frame = nextInput(queue); frame !== undefined; frame = nextInput(queue)) {
        expect(frame.seq).toBe(queue.acceptedSeq);
        expect(frame.payload.length).toBeLessThanOrEqual(INPUT_FRAME_BYTES);
        queue = inputSent(queue, frame.payload);
        expect(nextInput(queue)).toBeUndefined();
        const answer = turn < 200 ? plan[turn % plan.length] : undefined;
        turn += 1;
        const part = Math.floor((answer?.part ?? 1) * frame.payload.length);
        const isPart = answer?.refused === true;
        const accepted = isPart ? part : frame.payload.length;
        terminal.push(frame.payload.subarray(0, accepted));
        queue = inputAccepted(queue, frame.seq + BigInt(accepted));
        queue = inputAccepted(queue, frame.seq);
        queue = isPart ? inputRefused(queue) : queue;
      }
      expect(Buffer.concat(terminal).equals(Buffer.from(bytes))).toBe(true);
      expect(queue.acceptedSeq).toBe(queuedSeq(queue));
    }),
  );
});

test('an acknowledgement of bytes never sent changes nothing', () => {
  const queue = queued(emptyInput, Buffer.from('abc'));
  expect(inputAccepted(queue, 1n)).toBe(queue);
});
