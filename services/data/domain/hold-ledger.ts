/**
 * For how long presentations have held one terminal (law B3).
 *
 * A terminal is held at most `heldMaxMs` in any 60 s, summed over all presentations, so that
 * reconnecting cannot freeze an agent. Kept in one-second slots: under flood a hold ends thousands
 * of times a second, and a list of them would grow without bound. A slot counts until its whole
 * second has left the span, so the sum errs on the agent's side.
 */
export interface HoldLedger {
  /** Milliseconds held, by slot; the newest last. */
  readonly slots: readonly Slot[];
  /** Held since the terminal was attached. */
  readonly totalMs: number;
}

interface Slot {
  readonly second: number;
  readonly heldMs: number;
}

const SPAN_SECONDS = 60;

export const emptyLedger: HoldLedger = { slots: [], totalMs: 0 };

/** A hold from one instant to another has ended. Instants are monotonic milliseconds. */
export function heldBetween(ledger: HoldLedger, fromMs: number, toMs: number): HoldLedger {
  const heldMs = toMs - fromMs;
  const second = Math.floor(toMs / 1000);
  const slots = ledger.slots.filter((slot) => slot.second >= second - SPAN_SECONDS);
  const last = slots.at(-1);
  const merged =
    last?.second === second
      ? [...slots.slice(0, -1), { second, heldMs: last.heldMs + heldMs }]
      : [...slots, { second, heldMs }];
  return { slots: merged, totalMs: ledger.totalMs + heldMs };
}

/** What may still be held at an instant, in milliseconds; 0 when it is spent. */
export function holdLeftMs(ledger: HoldLedger, nowMs: number, heldMaxMs: number): number {
  const since = Math.floor(nowMs / 1000) - SPAN_SECONDS;
  const spentMs = ledger.slots
    .filter((slot) => slot.second >= since)
    .reduce((sum, slot) => sum + slot.heldMs, 0);
  return Math.max(0, heldMaxMs - spentMs);
}
