/**
 * A data node stopped and continued around a close, at any moment of it: what was acknowledged is said
 * and no more, and nothing is shown that was printed after the close was committed.
 *
 * The program prints the time of day, the clock by which the journal dates its facts.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Designation } from '#client/presentation.js';
import { designationOf } from '#client/workers.js';
import { WorkerState } from '#gen/wheelhouse/authority/v1/authority.js';
import { eventually, within } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import type { Stack } from '../stack/stack.js';
import { AgentRun, type Look } from './actors.js';
import { expectNoBugs, type Fact, journalOf, nothingLeft, reasonOf } from './aftermath.js';
import { Chance } from './chance.js';
import { product, Room } from './room.js';

/** Milliseconds since 1970, five hundred lines a second, whatever signal comes. */
const clock = [
  'python3',
  '-c',
  `import os, signal, time, tty
signal.signal(signal.SIGHUP, signal.SIG_IGN)
tty.setraw(0)
while True:
    try:
        os.write(1, b"%d\\n" % (time.time_ns() // 1000000))
    except OSError:
        break
    time.sleep(0.002)
`,
];

/** When the newest line that was shown was printed. */
function newest(look: Look): number {
  return Number(look.received.text.split('\n').at(-2));
}

/** When the node is stopped, counted from the close, and for how long. */
interface Stop {
  readonly atMs: number;
  readonly forMs: number;
}

/** How long authority waits for an acknowledgement. */
const ACK_MS = 1_000;

/** One stop that nothing can be acknowledged in, none at all, then as it comes. */
function stopsOf(chance: Chance, rounds: number): readonly (Stop | undefined)[] {
  const random = Array.from({ length: rounds }, () => ({
    atMs: chance.between(-10, 12),
    forMs: chance.between(0, 1.5 * ACK_MS),
  }));
  return [{ atMs: -20, forMs: 2 * ACK_MS }, undefined, ...random];
}

async function stoppedAroundClose(subject: Subject, rounds: number): Promise<void> {
  const chance = Chance.drawnFor('data stopped around a close');
  await using room = await Room.open(subject, {
    authority: { WHEELHOUSE_FENCE_ACK_MS: String(ACK_MS) },
  });
  const shown: number[] = [];
  const fenced: boolean[] = [];
  let { worker } = room;
  for (const stop of stopsOf(chance, rounds)) {
    const run = await AgentRun.starts(room.stack, room.agent, worker, clock, { isHeadless: true });
    const look = await room.operator.looksAt(worker);
    await look.shows(/\d+\n\d+\n/);
    await chance.moment(0, 30);
    fenced.push(await closes(room, worker, stop));
    await within('the look ends', 20_000, look.ended);
    expect(reasonOf(await within('the run ends', 20_000, run.ended))).toBe('WORKER_CLOSED');
    shown.push(newest(look));
    await run[Symbol.asyncDispose]();
    worker = designationOf(await room.operator.workers.reopen(worker));
  }
  expect(fenced.slice(0, 2)).toEqual([false, true]);
  await nothingLeft(room.stack);
  await room.stack.crash('authority');
  expectNothingNewer(journalOf(room.stack), shown);
  expectNoBugs(room.stack);
}

/** Returns whether it was fenced. While it is not, and the node stands still, it cannot be reopened. */
async function closes(
  { stack, operator }: Room,
  worker: Designation,
  stop: Stop | undefined,
): Promise<boolean> {
  const stopping = stop && stops(stack, stop);
  await delay(Math.max(0, -(stop?.atMs ?? 0)));
  const closing = operator.workers.close(worker);
  const early = await Promise.race([closing, stopping ?? closing]);
  if (early?.isFenced === false) {
    await expect(operator.workers.reopen(worker)).rejects.toMatchObject({
      refusal: { reason: 'WORKER_CLOSING' },
    });
  }
  await stopping;
  await stack.resume('data');
  const { isFenced } = await within('the close returns', 15_000, closing);
  await eventually('it is closed', async () => {
    return (await operator.workers.list())[0]?.state === WorkerState.CLOSED;
  });
  return isFenced;
}

async function stops(stack: Stack, { atMs, forMs }: Stop): Promise<undefined> {
  await delay(Math.max(0, atMs));
  await stack.pause('data');
  await delay(forMs);
}

/** Whoever was told what: what was printed once the close was committed is shown to nobody. */
function expectNothingNewer(facts: readonly Fact[], shown: readonly number[]): void {
  const committed = facts.filter(({ kind }) => kind === 'worker-closing').map(({ atMs }) => atMs);
  expect(committed.length).toBe(shown.length);
  expect(shown.filter((atMs, round) => atMs > (committed[round] ?? 0))).toEqual([]);
}

describe('a data node stopped around a close', () => {
  test('P7 says fenced only what was acknowledged, and shows nothing newer than the close', () =>
    stoppedAroundClose(product, 8));
  falsifier(
    'P7 no reply claims more than was acknowledged',
    {
      file: 'services/authority/domain/closing.ts',
      find: "[{ kind: 'cut-node' }, { kind: 'report-disconnect' }]",
      replace: "[{ kind: 'cut-node' }, { kind: 'report-fenced' }]",
    },
    (subject) => stoppedAroundClose(subject, 0),
  );
  falsifier(
    'P7 reopened only when the node has let go',
    {
      file: 'services/authority/domain/workers.ts',
      find: "if (standing === 'closing') {",
      replace: 'if (false) {',
    },
    (subject) => stoppedAroundClose(subject, 0),
  );
});
