import fc from 'fast-check';
import { expect, test } from 'vitest';
import { emptyLedger, heldBetween, holdLeftMs } from './hold-ledger.js';

test('a terminal that was held for the whole of what it may be cannot be held again within 60 s', () => {
  const spent = heldBetween(heldBetween(emptyLedger, 0, 10_000), 15_000, 35_000);
  expect(holdLeftMs(spent, 36_000, 30_000)).toBe(0);
  expect(holdLeftMs(spent, 60_000, 30_000)).toBe(0);
});

test('what was held longer than 60 s ago counts no more', () => {
  const spent = heldBetween(emptyLedger, 0, 30_000);
  expect(holdLeftMs(spent, 92_000, 30_000)).toBe(30_000);
  expect(spent.totalMs).toBe(30_000);
});

test('B3 no interleaving of holds lasts longer than the maximum in any 60 s, and the ledger stays small', () => {
  const heldMaxMs = 30_000;
  const pauses = fc.array(fc.record({ idleMs: fc.nat(20_000), wantedMs: fc.nat(40_000) }), {
    maxLength: 60,
  });
  fc.assert(
    fc.property(pauses, (list) => {
      let ledger = emptyLedger;
      let nowMs = 0;
      const holds: [number, number][] = [];
      for (const { idleMs, wantedMs } of list) {
        nowMs += idleMs;
        const untilMs = nowMs + Math.min(wantedMs, holdLeftMs(ledger, nowMs, heldMaxMs));
        ledger = heldBetween(ledger, nowMs, untilMs);
        holds.push([nowMs, untilMs]);
        nowMs = untilMs;
        const fromMs = nowMs - 60_000;
        const inSpan = holds.reduce((sum, [a, b]) => sum + Math.max(0, b - Math.max(a, fromMs)), 0);
        expect(inSpan).toBeLessThanOrEqual(heldMaxMs);
        expect(ledger.slots.length).toBeLessThanOrEqual(62);
      }
    }),
  );
});
