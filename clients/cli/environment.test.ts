import { expect, test } from 'vitest';
import { EnvFileError, parseAddition, parseEnvFile } from './environment.js';

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

test('--env-file takes a value of several lines', () => {
  expect(parseEnvFile('A="one\nnot a name\nthree"\nB=2\n')).toEqual({
    A: 'one\nnot a name\nthree',
    B: '2',
  });
});

test.each([
  ['a name that is none', 'A=1\n1A=x\n', /^line 2: "1A"/],
  ['a name with a blank', '# one\n\nA B=x', /^line 3: "A B"/],
  ['no name', '=x', /^line 1: ""/],
  ['no value', 'A=1\r\nB\r\n', /^line 2: "B"/],
])('--env-file refuses %s by its line', (_what, text, message) => {
  expect(() => parseEnvFile(text)).toThrow(message);
  expect(() => parseEnvFile(text)).toThrow(EnvFileError);
});
