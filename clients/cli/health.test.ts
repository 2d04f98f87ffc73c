import { expect, test } from 'vitest';
import { troubles } from './health.js';

test('what does not serve is said with what it means, and what serves is not said', () => {
  const parts = { journal: 'serving', bus: 'not serving', crew: 'not serving' } as const;
  expect(troubles({ health: 'serving', parts })).toEqual([
    ['bus', expect.stringContaining('the broker is away')],
    ['crew', 'a part that this command does not know'],
  ]);
});
