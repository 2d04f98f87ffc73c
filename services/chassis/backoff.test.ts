/** Waits double up to their maximum, and never leave the numbers. */
import { expect, test } from 'vitest';
import { backoffMs } from './backoff.js';

const limits = { firstMs: 100, maxMs: 5_000 };

test('a wait doubles with each failure, up to the longest', () => {
  const waits = [1, 2, 3, 4, 5, 6, 7, 8].map((failed) => backoffMs(limits, failed));
  expect(waits).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
});

test.each([0, -1, 1e9, Number.MAX_SAFE_INTEGER])(
  'any count has a wait within bounds: %d',
  (failed) => {
    expect(backoffMs(limits, failed)).toBeGreaterThanOrEqual(limits.firstMs);
    expect(backoffMs(limits, failed)).toBeLessThanOrEqual(limits.maxMs);
  },
);
