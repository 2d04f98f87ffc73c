/** What waits for a broker is one hint a plane, whatever the broker does. */
import { beforeEach, expect, test } from 'vitest';
import type { PlaneHint } from './bus.js';
import type { HintingPlane } from './bus-subjects.js';
import { HintOutbox } from './hint-outbox.js';

class Turn {
  readonly indexes: readonly bigint[];
  readonly done: Promise<void>;
  land: () => void = () => undefined;
  lose: () => void = () => undefined;

  constructor(hints: ReadonlyMap<HintingPlane, PlaneHint>) {
    this.indexes = [...hints.values()].map(({ index }) => index);
    this.done = new Promise((resolve, reject) => {
      this.land = resolve;
      this.lose = () => reject(new Error('lost'));
    });
  }
}

let turns: Turn[] = [];
let outbox: HintOutbox;
beforeEach(() => {
  turns = [];
  outbox = new HintOutbox((hints) => {
    const turn = new Turn(hints);
    turns.push(turn);
    return turn.done;
  });
});

function put(from: bigint, to: bigint): void {
  for (let index = from; index <= to; index += 1n) {
    outbox.put('authority', { index, life: 'wd_1' });
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const sent = (): (readonly bigint[])[] => turns.map(({ indexes }) => indexes);

test('without a broker the newest waits, and goes first when there is one', () => {
  put(1n, 10_000n);
  expect(outbox.waiting).toBe(1);
  expect(sent()).toEqual([]);
  outbox.start();
  expect(sent()).toEqual([[10_000n]]);
});

test('while one is in flight, the newest alone waits behind it', async () => {
  outbox.start();
  put(1n, 10_000n);
  expect(sent()).toEqual([[1n]]);
  expect(outbox.waiting).toBe(1);
  turns[0]?.land();
  await settled();
  expect(sent()).toEqual([[1n], [10_000n]]);
});

test('a hint that was lost on the way is said again, unless there is a newer one', async () => {
  outbox.start();
  put(1n, 1n);
  turns[0]?.lose();
  await settled();
  expect(sent()).toEqual([[1n]]);
  outbox.start();
  expect(sent()).toEqual([[1n], [1n]]);
  put(2n, 3n);
  turns[1]?.lose();
  await settled();
  outbox.start();
  expect(sent()).toEqual([[1n], [1n], [3n]]);
});

test('what becomes of an old connection’s hint does not stop the new one', async () => {
  outbox.start();
  put(1n, 1n);
  outbox.stop();
  outbox.start();
  put(2n, 2n);
  turns[0]?.lose();
  await settled();
  turns[1]?.land();
  await settled();
  put(3n, 3n);
  expect(sent()).toEqual([[1n], [2n], [3n]]);
});
