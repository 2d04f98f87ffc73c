import fc from 'fast-check';
import { expect, test } from 'vitest';
import { acked, isFull, limitSeq, openWindow, sent } from './send-window.js';

test('an ack of bytes that were never sent is told apart from every other', () => {
  const window = sent(openWindow(100n, 50), 120n);
  expect(acked(window, 121n)).toBeUndefined();
  expect(acked(window, 120n)?.ackedSeq).toBe(120n);
});

test('W1 holds after any interleaving, and an old or repeated ack changes nothing', () => {
  const moves = fc.array(
    fc.oneof(
      fc.record({
        kind: fc.constant('send' as const),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
      fc.record({
        kind: fc.constant('ack' as const),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
      fc.record({ kind: fc.constant('repeat' as const), back: fc.nat(1000) }),
    ),
    { maxLength: 200 },
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10_000 }), moves, (windowBytes, list) => {
      let window = openWindow(7n, windowBytes);
      for (const move of list) {
        const before = window;
        if (move.kind === 'send') {
          const room = Number(limitSeq(window) - window.sentSeq);
          window = sent(window, window.sentSeq + BigInt(Math.floor(room * move.share)));
        } else if (move.kind === 'ack') {
          const unacked = Number(window.sentSeq - window.ackedSeq);
          window =
            acked(window, window.ackedSeq + BigInt(Math.floor(unacked * move.share))) ?? window;
        } else {
          const old = window.ackedSeq - BigInt(move.back);
          expect(acked(window, old < 0n ? 0n : old)).toEqual(window);
        }
        expect(window.ackedSeq).toBeGreaterThanOrEqual(before.ackedSeq);
        expect(window.sentSeq).toBeGreaterThanOrEqual(before.sentSeq);
        expect(window.sentSeq).toBeGreaterThanOrEqual(window.ackedSeq);
        expect(window.sentSeq).toBeLessThanOrEqual(limitSeq(window));
        expect(isFull(window)).toBe(window.sentSeq === limitSeq(window));
      }
    }),
  );
});
