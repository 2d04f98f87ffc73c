import fc from 'fast-check';
import { expect, test } from 'vitest';
import { acked, isAckDue, openLedger, received, taken } from './ack-ledger.js';

test('A1 holds, and the sender is never left without an acknowledgement it waits for', () => {
  const lengths = fc.array(fc.integer({ min: 0, max: 70_000 }), { maxLength: 60 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1 << 21 }), lengths, (windowBytes, frames) => {
      let ledger = openLedger(17n, windowBytes);
      for (const bytes of frames) {
        const next = received(ledger, ledger.receivedSeq, bytes);
        ledger = taken(next ?? ledger);
        expect(next).toBeDefined();
        const isDue = isAckDue(ledger, bytes);
        ledger = isDue ? acked(ledger) : ledger;
        expect(ledger.ackedSeq <= ledger.takenSeq).toBe(true);
        expect(ledger.takenSeq <= ledger.receivedSeq).toBe(true);
        expect(ledger.takenSeq - ledger.ackedSeq < BigInt(Math.ceil(windowBytes / 4))).toBe(true);
      }
    }),
  );
});

test('a gap and a repeat are both seen', () => {
  const ledger = received(openLedger(100n, 4096), 100n, 10);
  expect(ledger).toBeDefined();
  expect(ledger && received(ledger, 111n, 1)).toBeUndefined();
  expect(ledger && received(ledger, 100n, 10)).toBeUndefined();
  expect(ledger && received(ledger, 110n, 1)?.receivedSeq).toBe(111n);
});

test('a flood is acknowledged by the quarter window, a key at once, nothing twice', () => {
  const ledger = openLedger(0n, 1024 * 1024);
  const flood = taken(received(ledger, 0n, 65_536) ?? ledger);
  expect(isAckDue(flood, 65_536)).toBe(false);
  const key = taken(received(ledger, 0n, 1) ?? ledger);
  expect(isAckDue(key, 1)).toBe(true);
  expect(isAckDue(acked(key), 1)).toBe(false);
});
