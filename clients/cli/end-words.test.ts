import { expect, test } from 'vitest';
import type { StreamEnd } from '#client/stream-end.js';
import { endAdvice, endSentence, endValue, watchExitCode } from './end-words.js';

const positions = { ackedSeq: 1n, sentSeq: 2n, producedSeq: 3n } as const;
const ended: StreamEnd = {
  kind: 'closed',
  reason: 'ENDED',
  ...positions,
  exit: { kind: 'signal', signal: 9 },
};
const closed: StreamEnd = {
  kind: 'closed',
  reason: 'WORKER_CLOSED',
  ...positions,
  exit: undefined,
};
const detached: StreamEnd = { kind: 'detached', takenSeq: 5n, sender: undefined };
const lost: StreamEnd = { kind: 'lost', takenSeq: 5n, cause: new Error('cut') };

test.each([
  ['the program’s end', ended, undefined, 'ended acked=1 sent=2 produced=3 signal=9', 0],
  ['a reason', closed, undefined, 'worker-closed acked=1 sent=2 produced=3', 3],
  ['leaving', detached, undefined, 'detached acked=5', 0],
  ['a loss', lost, undefined, 'transport-lost acked=5', 4],
  [
    'a loss that was asked about',
    lost,
    'worker-closed',
    'transport-lost, since worker-closed acked=5',
    4,
  ],
])('%s is told in one line, with its exit code', (_what, end, since, words, code) => {
  expect(endSentence(end, since)).toBe(`closed: ${words}`);
  expect(watchExitCode(end)).toBe(code);
});

test('programs are told the same', () => {
  expect(endValue(ended, undefined)).toEqual({
    closed: 'ended',
    ackedSeq: 1,
    sentSeq: 2,
    producedSeq: 3,
    exitSignal: 9,
  });
  expect(endValue(lost, 'worker-closed')).toEqual({
    closed: 'transport-lost',
    since: 'worker-closed',
    ackedSeq: 5,
  });
});

test.each([
  ['the program’s end', ended, undefined, /^The program has ended.*watch demo --wait/],
  ['closing', closed, undefined, /worker reopen demo/],
  ['leaving', detached, undefined, /^You left; the program goes on/],
  ['a loss', lost, undefined, /wheelhouse status/],
  ['a slow reader', { ...closed, reason: 'LAGGING' } as StreamEnd, undefined, /--hold-limit/],
  ['one that may hold nothing', { ...closed, reason: 'LAGGING' } as StreamEnd, 0, /never slows/],
])('%s is explained with what to do next', (_what, end, holdLimitMs, words) => {
  expect(endAdvice(end, { name: 'demo', holdLimitMs })).toMatch(words);
});
