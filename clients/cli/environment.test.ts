import { expect, test } from 'vitest';
import { parseAddition, parseEnvFile } from './environment.js';

const caller = { HOME: '/home/ada', EMPTY: '' };

test.each([
  ['a value', 'A=1', { A: '1' }],
  ['a value with equals signs', 'A=b=c', { A: 'b=c' }],
  ['an empty value', 'A=', { A: '' }],
  ['the caller’s own', 'HOME', { HOME: '/home/ada' }],
  ['the caller’s own, empty', 'EMPTY', { EMPTY: '' }],
  ['one the caller has not', 'ABSENT', {}],
])('-e takes %s', (_what, text, expected) => {
  expect(parseAddition(text, caller)).toEqual(expected);
});

test.each(['', '=x', '1A=x', 'A B=x', 'A-B'])('-e takes no %j', (text) => {
  expect(parseAddition(text, caller)).toBeUndefined();
});

test('--env-file reads what dotenv reads', () => {
  const file = ['# comment', 'A=1', 'export B="two words"', "C='#no comment'", '', 'D='].join('\n');
  expect(parseEnvFile(file)).toEqual({ A: '1', B: 'two words', C: '#no comment', D: '' });
});
