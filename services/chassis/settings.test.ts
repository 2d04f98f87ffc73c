import { expect, test } from 'vitest';
import { integer, load, SettingFault, text } from './settings.js';

const table = {
  count: integer('A_COUNT', { unit: 'things', fallback: 3, min: 0, max: 10, reason: 'few' }),
  word: text('A_WORD', 'none', 'any'),
};

test('what is not set is its default', () => {
  expect(load(table, {})).toEqual({ count: 3, word: 'none' });
});

test.each(['0', '7', '10'])('%s is within the range', (given) => {
  expect(load(table, { A_COUNT: given })).toMatchObject({ count: Number(given) });
});

test.each(['', ' ', '-1', '11', '1.5', 'many'])('"%s" stops the start by the name', (given) => {
  expect(() => load(table, { A_COUNT: given })).toThrow(SettingFault);
  expect(() => load(table, { A_COUNT: given })).toThrow('A_COUNT');
});

test('an empty text is a text', () => {
  expect(load(table, { A_WORD: '' })).toMatchObject({ word: '' });
});
