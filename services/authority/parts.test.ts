import { expect, test } from 'vitest';
import { partsOf } from './parts.js';

const lowWaterBytes = 100;
const bus = {
  isConnected: true,
  hint: () => undefined,
  onHint: () => ({ [Symbol.dispose]: () => undefined }),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

test.each([
  { journal: 'with room', isFull: false, freeBytes: () => 100, isServing: true },
  { journal: 'under its low water', isFull: false, freeBytes: () => 99, isServing: false },
  { journal: 'that was found full', isFull: true, freeBytes: () => 100, isServing: false },
  {
    journal: 'whose disk does not answer',
    isFull: false,
    freeBytes: () => {
      throw new Error('EIO');
    },
    isServing: false,
  },
])('a journal $journal: serving is $isServing', ({ isFull, freeBytes, isServing }) => {
  const [journal] = partsOf({ journal: { isFull, freeBytes }, bus }, lowWaterBytes);
  expect(journal?.name).toBe('journal');
  expect(journal?.isServing()).toBe(isServing);
});

test('neither a full disk nor an absent bus takes authority away', () => {
  const parts = partsOf({ journal: { isFull: true, freeBytes: () => 0 }, bus }, lowWaterBytes);
  expect(parts.map(({ isEssential }) => isEssential)).toEqual([false, false]);
});
