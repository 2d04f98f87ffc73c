/** What falls between two moments: a look that outlives its agent, a program that ends while its node dials. */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { eventually, within } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import { Operator } from './actors.js';
import { nameOf, presentOpen, RawConnection } from './hostile-client.js';
import { product, Room } from './room.js';

/** The agent has left, its terminal is released, and a stalled reader still has a frame at the transport. */
async function stalledAfterLeaving(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  const run = await room.runs(['sh', '-c', 'stty raw; exec yes'], { isHeadless: true });
  const look = await room.operator.looksAt(room.worker, { holdLimitMs: 30_000 });
  await look.shows(/y\ny\n/);
  look.stalls();
  await look.standsStill();
  await run[Symbol.asyncDispose]();
  await eventually('the worker is vacant', async () => {
    return (await room.operator.workers.list())[0]?.state === 1;
  });
  // Longer than its session is given to end: by then only the look is left of it.
  await delay(3_500);
  const closing = await room.operator.workers.close(room.worker);
  expect(closing.isFenced).toBe(true);
  look.goesOn();
  const end = await within('the look is cut off', 20_000, look.ended);
  expect(end.kind).toBe('lost');
}

/** A name as long as a message may be, beside a look that must not notice. */
async function longReference(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await room.runs(['sh', '-c', 'stty raw -echo; echo ready; exec cat']);
  await run.shows(/ready/);
  const look = await room.operator.looksAt(room.worker);
  const identity = await room.stack.identityFor('human-control', 'operator');
  using raw = await RawConnection.open(room.stack.endpoints.data, identity);
  const call = raw.call('/wheelhouse.data.v1.DataService/Present');
  call.send(presentOpen({ workerRef: 'w'.repeat(524_276), generation: 1n }));
  expect(nameOf(await call.ended())).toBe('REQUEST_INVALID');
  await run.possession.write(Buffer.from('unmoved\n'));
  await look.shows(/unmoved/);
}

/** Its node had told its inventory, and is not answered until the program has ended. */
async function endsWhileDialling(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  const { argv, tell } = room.whenTold('exit 0');
  const run = await room.runs(argv);
  await room.stack.pause('authority');
  const isNoticed = (): boolean => /does not answer/.test(room.stack.log('data'));
  await eventually('data has noticed', isNoticed, 30_000);
  // It dials again: the kernel accepts, nobody answers.
  await delay(1_000);
  tell();
  await within('the run ends', 15_000, run.ended);
  await room.stack.resume('authority');
  await using again = await eventually(
    'the operator is back',
    () => Operator.at(room.stack, 'operator').catch(() => undefined),
    20_000,
  );
  await eventually('the worker is vacant', async () => {
    return (await again.workers.list())[0]?.state === 1;
  });
  run.bind.close();
}

describe('between', () => {
  test('P7 a stalled look whose agent has left is cut off by the closing', () =>
    stalledAfterLeaving(product));
  falsifier(
    'P7 a fence finds every look',
    {
      file: 'services/data/carrier.ts',
      find: '...this.#leaving,',
      replace: '',
    },
    stalledAfterLeaving,
  );
  test('a reference as long as a message is refused, and costs nobody anything', () =>
    longReference(product));
  test('a program that ends while its node dials authority again leaves its seat', () =>
    endsWhileDialling(product));
});
