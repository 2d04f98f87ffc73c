import { expect, test } from 'vitest';
import type { Refusal } from '#kernel/refusal.js';
import { OpenStreams } from './open-streams.js';

class Remembering {
  readonly refusals: string[] = [];

  refuse({ reason }: Refusal): void {
    this.refusals.push(reason);
  }
}

test('draining refuses what is open, by name, and not what has left', () => {
  const streams = new OpenStreams();
  const [open, left] = [new Remembering(), new Remembering()];
  expect([streams.enter(open), streams.enter(left)]).toEqual([true, true]);
  streams.leave(left);
  streams.drain();
  expect([open.refusals, left.refusals]).toEqual([['SERVICE_DRAINING'], []]);
});

test('a stream that enters while draining is refused by name, and is not to be served', () => {
  const streams = new OpenStreams();
  const late = new Remembering();
  streams.drain();
  expect(streams.enter(late)).toBe(false);
  expect(late.refusals).toEqual(['SERVICE_DRAINING']);
});
