/**
 * The time of day of one service moved by an hour, either way: what is under way goes on, what depends on
 * the life of a certificate is refused by name, and when the clock is right again all is as before.
 */
import { describe, expect, test } from 'vitest';
import { RefusedError } from '#client/call-errors.js';
import type { Designation } from '#client/presentation.js';
import { designationOf } from '#client/workers.js';
import { eventually } from '../stack/eventually.js';
import { needs } from '../stack/machine.js';
import { type Plane, planes } from '../stack/stack.js';
import { AgentRun, type Look, raw } from './actors.js';
import { exactToItsEnd, expectNoBugs, nothingLeft, reasonOf } from './aftermath.js';
import { countingSlowly } from './counting.js';
import { product, Room } from './room.js';

/** More than a run's certificate lives. */
const MOVED_MS = 61 * 60_000;

async function moved(plane: Plane, byMs: number): Promise<void> {
  await using room = await Room.open(product, {}, { hasMovableClocks: true });
  const { stack, operator, worker } = room;
  const run = await room.runs(countingSlowly);
  const look = await operator.looksAt(worker);
  await look.shows(/\d/);
  stack.moveClock(plane, byMs);
  await goesOn(look);
  const fresh = await operator.looksAt(worker, { replace: true });
  await goesOn(fresh);
  expect((await operator.workers.close(worker)).isFenced).toBe(true);
  expect(reasonOf(await exactToItsEnd(look))).toBe('REPLACED');
  expect(reasonOf(await exactToItsEnd(fresh))).toBe('WORKER_CLOSED');
  expect(reasonOf(await exactToItsEnd(run))).toBe('WORKER_CLOSED');
  await run[Symbol.asyncDispose]();
  const reopened = designationOf(await operator.workers.reopen(worker));
  await needsTheTime(room, reopened, () => stack.moveClock(plane, 0));
  await nothingLeft(stack);
  expectNoBugs(stack);
}

async function goesOn({ received }: Look): Promise<void> {
  const before = received.bytes;
  await eventually('more is shown', () => received.bytes > before + 100_000n);
}

/** A certificate of an hour's life is worth nothing between two who are further apart, and fine again later. */
async function needsTheTime(room: Room, worker: Designation, setRight: () => void): Promise<void> {
  const starts = (): Promise<AgentRun> =>
    AgentRun.starts(room.stack, room.agent, worker, raw('echo ready; exec cat'));
  const early = await starts().then(
    () => 'started',
    (error: unknown) => (error instanceof RefusedError ? error.refusal.reason : String(error)),
  );
  expect(early).toMatch(/^(?:CERTIFICATE_EXPIRED|UnreachableError)/);
  setRight();
  await using run = await eventually('it runs when the clock is right', starts);
  await run.shows(/ready/);
}

describe('a clock moved by an hour', () => {
  for (const plane of planes) {
    test(`of ${plane}, forward`, async (context) => {
      needs(context, 'libfaketime');
      await moved(plane, MOVED_MS);
    });
    test(`of ${plane}, back`, async (context) => {
      needs(context, 'libfaketime');
      await moved(plane, -MOVED_MS);
    });
  }
});
