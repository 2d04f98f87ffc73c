/** Links of which one end has stopped without a word: noticed in the bound that is stated, and no quiet stream is taken for one. */
import { describe, expect, test } from 'vitest';
import { RefusedError } from '#client/call-errors.js';
import { eventually, within } from '../stack/eventually.js';
import type { Subject } from '../stack/falsifier.js';
import { Operator } from './actors.js';
import { echo, loggedNoBug, stillServes } from './hostile-room.js';
import { product, Room } from './room.js';

/** A vanished peer is noticed within 15 s; here twice that, for a machine that is busy. */
const NOTICED_MS = 30_000;

async function bindsAs(room: Room, name: string): Promise<Operator | string> {
  return await Operator.at(room.stack, name).catch((error: unknown) =>
    error instanceof RefusedError ? error.refusal.reason : String(error),
  );
}

/**
 * The operator's client stops where it stands: its life ends, its look with it, and another may come.
 * All that while the agent says nothing and hears nothing, and is none the worse.
 */
async function clientStops(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  const { stack } = room;
  const watching = stack.start(['watch', 'demo', '--as', 'human-control/operator'], {
    tty: { cols: 80, rows: 24 },
  });
  await eventually(
    'it is watched',
    async () => (await room.operator.workers.list())[0]?.state === 3,
  );
  room.operator.bind.close();
  watching.signal('SIGSTOP');
  const stoppedAt = performance.now();
  try {
    expect(await bindsAs(room, 'bob')).toBe('CONTROL_CHANNEL_OCCUPIED');
    await using bob = await eventually(
      'another operator may come',
      async () => {
        const bound = await bindsAs(room, 'bob');
        return typeof bound === 'string' ? undefined : bound;
      },
      NOTICED_MS,
    );
    // Before that it was a living client, for all anybody knew.
    expect(performance.now() - stoppedAt).toBeGreaterThan(4_000);
    expect((await bob.workers.list())[0]).toMatchObject({ name: 'demo', state: 2 });
  } finally {
    watching.signal('SIGCONT');
    await watching[Symbol.asyncDispose]();
  }
  await using again = await Operator.at(stack, 'operator');
  await stillServes({ stack, operator: again, worker: room.worker }, run);
}

/** The services stop where they stand: their callers are told that the transport is lost, and by whom. */
async function servicesStop(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  const run = await room.runs(echo);
  await run.shows(/ready/);
  const { stack, operator } = room;
  const look = await operator.looksAt(room.worker, { holdLimitMs: 30_000 });
  await stack.pause('data');
  await using _release = {
    [Symbol.asyncDispose]: async () => {
      await stack.resume('data');
      await within('the program is let go', NOTICED_MS, run.ended);
      run.bind.close();
    },
  };
  const nodeGone = eventually(
    'authority misses its node',
    async () => (await operator.workers.list())[0]?.dataEndpoint === '',
    NOTICED_MS,
  );
  const ends = await within('the streams end', NOTICED_MS, Promise.all([look.ended, run.ended]));
  for (const end of ends) {
    expect(end.kind).toBe('lost');
    expect(String(end.kind === 'lost' ? end.cause : end)).toMatch(/data at .*UNAVAILABLE/);
  }
  await nodeGone;
  await stack.resume('data');
  await eventually(
    'the node is back',
    async () => (await operator.workers.list())[0]?.dataEndpoint !== '',
  );
  loggedNoBug(stack);
}

describe('half-open links (C055)', () => {
  test.concurrent('a client that stops is gone in the stated time, one that is quiet is not', () =>
    clientStops(product));
  test.concurrent('a service that stops is noticed by its callers and by the other', () =>
    servicesStop(product));
});
