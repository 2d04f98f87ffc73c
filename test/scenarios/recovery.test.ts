/** How long it takes until an operator sees a living terminal again, whatever was taken away and given back. */
import { describe, type TestContext, test } from 'vitest';
import { eventually } from '../stack/eventually.js';
import { type Plane, planes } from '../stack/stack.js';
import { AgentRun, Operator, raw } from './actors.js';
import { expectNoBugs, nothingLeft } from './aftermath.js';
import { took } from './figure.js';
import { product, Room } from './room.js';

const RECOVERY_MS = 40_000;

/**
 * From the moment the plane was given back: bound, looked at, shown what the program prints now.
 *
 * An agent whose node is away has lost its terminal, as `run` would tell it, and leaves and begins anew.
 */
async function recovers(room: Room, plane: Plane, run: AgentRun): Promise<void> {
  if (plane === 'data') {
    await run[Symbol.asyncDispose]();
  }
  await using operator = await eventually(
    'the operator is bound',
    () => Operator.at(room.stack, 'operator').catch(() => undefined),
    RECOVERY_MS,
  );
  await using _again = plane === 'data' ? await startsAgain(room) : undefined;
  await eventually(
    'the terminal is shown',
    async () => {
      const look = await operator.looksAt(room.worker, { replace: true });
      await look.shows(/tick/);
      await look.presentation.detach();
      return true;
    },
    RECOVERY_MS,
  );
}

const program = raw('while :; do echo tick; sleep 0.02; done');

async function startsAgain(room: Room): Promise<AgentRun> {
  return await eventually(
    'the agent is seated',
    () => AgentRun.starts(room.stack, room.agent, room.worker, program),
    RECOVERY_MS,
  );
}

async function killed(plane: Plane, context: TestContext): Promise<void> {
  await using room = await Room.open(product);
  const run = await room.runs(program);
  await run.shows(/tick/);
  await room.stack.crash(plane);
  const since = performance.now();
  await room.stack.restart(plane);
  await recovers(room, plane, run);
  took(context, `${plane} killed and started, shown again after`, since);
  await run[Symbol.asyncDispose]();
  await nothingLeft(room.stack);
  expectNoBugs(room.stack);
}

/** Longer than any keepalive, so that everybody has given it up. */
async function paused(plane: Plane, context: TestContext): Promise<void> {
  await using room = await Room.open(product);
  const run = await room.runs(program);
  await run.shows(/tick/);
  await room.stack.pause(plane);
  await new Promise((resolve) => setTimeout(resolve, 17_000));
  const since = performance.now();
  await room.stack.resume(plane);
  await recovers(room, plane, run);
  took(context, `${plane} paused for 17 s, shown again after`, since);
  await run[Symbol.asyncDispose]();
  await nothingLeft(room.stack);
  expectNoBugs(room.stack);
}

describe('recovery', () => {
  for (const plane of planes) {
    test(`${plane} killed`, (context) => killed(plane, context));
    test(`${plane} paused until everybody has given it up`, (context) => paused(plane, context));
  }
});
