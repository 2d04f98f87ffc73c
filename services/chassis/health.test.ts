import { expect, test } from 'vitest';
import type { Clock } from '#kernel/clock.js';
import { Health, lookMs, partOf, wholeOf } from './health.js';

const well = { isEssential: true, isServing: true };
const unwell = { isEssential: true, isServing: false };
const dispensable = { isEssential: false, isServing: false };

test.each([
  { parts: [], isDraining: false, whole: 'SERVING' },
  { parts: [well, well], isDraining: false, whole: 'SERVING' },
  { parts: [well, dispensable], isDraining: false, whole: 'SERVING' },
  { parts: [dispensable, unwell], isDraining: false, whole: 'NOT_SERVING' },
  { parts: [well, unwell], isDraining: false, whole: 'NOT_SERVING' },
  { parts: [well], isDraining: true, whole: 'NOT_SERVING' },
  { parts: [], isDraining: true, whole: 'NOT_SERVING' },
])('the whole follows from its essential parts and the drain: $parts → $whole', (row) => {
  expect(wholeOf(row.parts, row.isDraining)).toBe(row.whole);
});

test.each([
  { part: well, isDraining: false, is: 'SERVING' },
  { part: dispensable, isDraining: false, is: 'NOT_SERVING' },
  { part: unwell, isDraining: false, is: 'NOT_SERVING' },
  { part: well, isDraining: true, is: 'NOT_SERVING' },
])('a part serves while it does and nothing drains: $part → $is', ({ part, isDraining, is }) => {
  expect(partOf(part, isDraining)).toBe(is);
});

/** One timer at a time, gone off by hand. */
function handClock(): Clock & { readonly due: (() => void)[] } {
  const due: (() => void)[] = [];
  const after = (delayMs: number, call: () => void): Disposable => {
    expect(delayMs).toBe(lookMs);
    due.push(call);
    return { [Symbol.dispose]: () => void due.splice(due.indexOf(call), 1) };
  };
  return { now: () => 0, monotonic: () => 0, after, due };
}

test('a status is what the part is when it is asked for', () => {
  let isServing = true;
  const part = { name: 'disk', isEssential: true, isServing: () => isServing };
  const health = new Health(handClock(), [part]);
  expect([health.part('disk'), health.whole(), health.part('tape')]).toEqual([
    'SERVING',
    'SERVING',
    undefined,
  ]);
  isServing = false;
  expect([health.part('disk'), health.whole()]).toEqual(['NOT_SERVING', 'NOT_SERVING']);
});

test('parts are looked at by the clock while somebody watches, and not a moment longer', () => {
  const clock = handClock();
  const health = new Health(clock, []);
  expect(clock.due).toHaveLength(0);
  let looks = 0;
  const one = health.watch(() => {
    looks += 1;
  });
  const other = health.watch(() => undefined);
  for (const round of [1, 2, 3]) {
    expect(clock.due).toHaveLength(1);
    clock.due.shift()?.();
    expect(looks).toBe(round);
  }
  one[Symbol.dispose]();
  expect(clock.due).toHaveLength(1);
  other[Symbol.dispose]();
  expect(clock.due).toHaveLength(0);
});

test('a drain is told in the turn it is said in, and everything has stopped serving by then', () => {
  const health = new Health(handClock(), [
    { name: 'disk', isEssential: false, isServing: () => true },
  ]);
  const heard: unknown[] = [];
  using _ = health.watch(() => heard.push(health.whole(), health.part('disk')));
  health.drain();
  expect(heard).toEqual(['NOT_SERVING', 'NOT_SERVING']);
  expect(health.draining.aborted).toBe(true);
});
