import { expect, test } from 'vitest';
import { Openings, type Turn } from './openings.js';

/** A call that has entered, and how far it has come. */
class Call {
  state: 'waiting' | 'asking' | 'given up' = 'waiting';
  answered = (): void => undefined;
  readonly turn: Turn;

  constructor(openings: Openings, caller = 7) {
    this.turn = openings.enter(caller, {
      ask: (done) => {
        this.state = 'asking';
        this.answered = done;
      },
      giveUp: () => {
        this.state = 'given up';
      },
    });
  }
}

function entered(openings: Openings, count: number): readonly Call[] {
  return Array.from({ length: count }, () => new Call(openings));
}

const statesOf = (calls: readonly Call[]): readonly string[] => calls.map(({ state }) => state);

test('a caller has only so many questions on their way, and an answer lets the next one ask', () => {
  const calls = entered(new Openings(2), 4);
  expect(statesOf(calls)).toEqual(['asking', 'asking', 'waiting', 'waiting']);
  calls[1]?.answered();
  expect(statesOf(calls)).toEqual(['asking', 'asking', 'asking', 'waiting']);
});

test('a call that is gone before its turn never asks, and keeps nobody waiting', () => {
  const calls = entered(new Openings(1), 3);
  calls[1]?.turn.giveUp();
  calls[0]?.answered();
  expect(statesOf(calls)).toEqual(['asking', 'given up', 'asking']);
});

test('a call that is gone while it asks keeps its place until the answer', () => {
  const calls = entered(new Openings(1), 2);
  calls[0]?.turn.giveUp();
  expect(statesOf(calls)).toEqual(['asking', 'waiting']);
  calls[0]?.answered();
  expect(statesOf(calls)).toEqual(['asking', 'asking']);
});

test('callers do not wait for each other, and one comes back to an empty line', () => {
  const openings = new Openings(1);
  const [first, second] = entered(openings, 2);
  expect(new Call(openings, 8).state).toBe('asking');
  first?.answered();
  second?.answered();
  expect(new Call(openings).state).toBe('asking');
});
