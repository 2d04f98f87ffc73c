import fc from 'fast-check';
import { expect, test } from 'vitest';
import { instant } from '../../services/authority/domain/instant.js';

test('an instant reads as the machine’s own calendar has it', () => {
  const lastMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
  for (const atMs of [0, 951_782_400_000, 1_709_164_800_000, 4_107_542_400_000, lastMs]) {
    expect(instant(atMs)).toBe(new Date(atMs).toISOString());
  }
  fc.assert(
    fc.property(fc.integer({ min: 0, max: lastMs }), (atMs) => {
      expect(instant(atMs)).toBe(new Date(atMs).toISOString());
    }),
  );
});
