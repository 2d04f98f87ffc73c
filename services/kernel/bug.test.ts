import { expect, test } from 'vitest';
import { assertNever, Bug } from './bug.js';

function endOn(value: unknown): () => never {
  return () => assertNever(value as never);
}

test('a case nobody ruled is a bug that says its kind, and nothing else of it', () => {
  const ending = endOn({ kind: 'input', seq: 7n, payload: 'secret' });
  expect(ending).toThrow(Bug);
  expect(ending).toThrow(/^a case nobody ruled: input$/);
});

test.each([
  ['a word', 'secret', 'string'],
  ['a number', 7n, 'bigint'],
  ['nothing', null, 'object'],
  ['a kind that is no word', { kind: { secret: 7n } }, 'object'],
])('%s has no kind to say', (_what, value, type) => {
  expect(endOn(value)).toThrow(`a case nobody ruled: a ${type} without a kind`);
});
