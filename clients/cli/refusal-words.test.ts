import { expect, test } from 'vitest';
import { UnreachableError } from '#client/call-errors.js';
import { refusalSentence, silenceSentence } from './refusal-words.js';

test.each([
  ['not-found', 'nosuch', /^There is no program "nosuch" on the worker’s PATH; /],
  ['not-found', './nosuch', /^There is no program ".\/nosuch" .*workspace/],
  ['not-executable', '/etc/passwd', /"\/etc\/passwd" cannot be executed/],
  ['workspace-missing', '/no', /^The workspace "\/no" is not a folder that the worker’s user may/],
  ['refused-by-system', 'x', /did not start "x"/],
])('a program that is not started as %s is told by its name, once', (cause, file, words) => {
  const sentence = refusalSentence({ reason: 'SPAWN_FAILED', facts: { cause, file } });
  expect(sentence).toMatch(words);
  expect(sentence.split(JSON.stringify(file))).toHaveLength(2);
});

test('a field that does not do is told with its rule and what was given', () => {
  const facts = { field: 'name', rule: 'short', value: 'A B' };
  expect(refusalSentence({ reason: 'REQUEST_INVALID', facts })).toBe(
    'name must be short, not "A B".',
  );
});

test('whatever the facts do not allow is the catalogue’s to say', () => {
  expect(refusalSentence({ reason: 'SPAWN_FAILED', facts: { cause: 'new' } })).toMatch(/cause=new/);
  expect(refusalSentence({ reason: 'WORKER_UNKNOWN', facts: {} })).toMatch(/worker list/);
});

test.each([
  [
    'UNAVAILABLE: No connection established. Last error: connect ECONNREFUSED 1:2',
    'nobody listens there',
  ],
  ['DEADLINE_EXCEEDED: after 10s', 'no answer in time'],
  ['UNAVAILABLE: something new', 'something new'],
])('silence as %s is told by its cause', (why, words) => {
  expect(silenceSentence(new UnreachableError('data at 1:2', why))).toBe(
    `data at 1:2 gave no answer: ${words}`,
  );
});

test('who was never asked did not leave an answer out', () => {
  expect(silenceSentence(new UnreachableError('authority', 'no services'))).toBe('no services');
});
