/** A follower over a stream that breaks, repeats, skips and hangs: its consumer never notices. */
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import type { Clock } from '#kernel/clock.js';
import { FactFollower, type Numbered, type OpenTail } from './fact-follower.js';

/** Time that passes when somebody waits: every wait is over at once, in its order. */
class HurriedClock implements Clock {
  #nowMs = 0;
  readonly waits: number[] = [];

  now(): number {
    return this.#nowMs;
  }

  monotonic(): number {
    return this.#nowMs;
  }

  after(delayMs: number, call: () => void): Disposable {
    this.waits.push(delayMs);
    const timer = setImmediate(() => {
      this.#nowMs += delayMs;
      call();
    });
    return { [Symbol.dispose]: () => clearImmediate(timer) };
  }
}

/** A clock whose waits never end by themselves. */
class StoppedClock extends HurriedClock {
  override after(delayMs: number): Disposable {
    this.waits.push(delayMs);
    return { [Symbol.dispose]: () => undefined };
  }
}

const heardHints = new Set<(index: bigint) => void>();
afterEach(() => heardHints.clear());

function hint(index: bigint): void {
  for (const call of heardHints) {
    call(index);
  }
}

function followerOf(
  open: OpenTail<Numbered>,
  clock: Clock,
  causes: unknown[] = [],
): FactFollower<Numbered> {
  return new FactFollower({
    open,
    clock,
    after: 0n,
    onHint: (call) => {
      heardHints.add(call);
      return { [Symbol.dispose]: () => heardHints.delete(call) };
    },
    onCutOff: (cause) => causes.push(cause),
  });
}

async function taken(follower: FactFollower<Numbered>, count: number): Promise<readonly bigint[]> {
  const indexes: bigint[] = [];
  for await (const { index } of follower) {
    indexes.push(index);
    if (indexes.length === count) {
      break;
    }
  }
  return indexes;
}

const firstTo = (count: number): readonly bigint[] =>
  Array.from({ length: count }, (_, at) => BigInt(at + 1));

/** What one stream does: facts to skip or repeat, then its end. */
const stream = fc.record({
  length: fc.nat({ max: 8 }),
  mischief: fc.constantFrom('none', 'repeats', 'skips', 'goes back', 'throws'),
  opens: fc.boolean(),
  hints: fc.array(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), { maxLength: 4 }),
});

test('F1 holds over streams that break, repeat, skip and go back, and hints that lie', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(stream, { maxLength: 12 }), async (streams) => {
      let at = 0;
      const follower = followerOf(async function* (after, { opened }) {
        const plan = streams[at];
        at += 1;
        if (plan?.opens !== false) {
          opened();
        }
        plan?.hints.forEach(hint);
        const from = plan?.mischief === 'goes back' ? 0n : after;
        for (let step = 1n; step <= BigInt(plan?.length ?? 100); step += 1n) {
          yield { index: from + step };
          if (plan?.mischief === 'repeats') {
            yield { index: from + step };
          }
          if (plan?.mischief === 'skips') {
            yield { index: from + step + 2n };
          }
        }
        if (plan?.mischief === 'throws') {
          throw new Error('the transport broke');
        }
      }, new HurriedClock());
      expect(await taken(follower, 40)).toEqual(firstTo(40));
    }),
    { numRuns: 200 },
  );
});

test('cut off, it comes back at once by a hint of news, and by nothing older', async () => {
  const dialled: bigint[] = [];
  const clock = new StoppedClock();
  const follower = followerOf(async function* (after, { opened }) {
    dialled.push(after);
    opened();
    yield { index: after + 1n };
  }, clock);
  const facts = follower[Symbol.asyncIterator]();
  expect((await facts.next()).value).toEqual({ index: 1n });
  const second = facts.next();
  await turn();
  expect(dialled).toEqual([0n]);
  expect(follower.freshness).toMatchObject({ isFollowing: false, cutOffAtMs: 0, lastIndex: 1n });
  hint(1n);
  hint(0n);
  await turn();
  expect(clock.waits).toEqual([100]);
  hint(2n);
  // It was dialled this very moment: a hint brings it back after the least time, not before.
  expect(clock.waits).toEqual([100, 100]);
  follower[Symbol.dispose]();
  expect((await second).done).toBe(true);
  expect(dialled).toEqual([0n]);
});

test('whoever stops iterating ends the stream', async () => {
  let signal: AbortSignal | undefined;
  const follower = followerOf(async function* (after, call) {
    signal = call.signal;
    for (let index = after + 1n; ; index += 1n) {
      yield { index };
    }
  }, new HurriedClock());
  expect(await taken(follower, 3)).toEqual(firstTo(3));
  expect(signal?.aborted).toBe(true);
  expect(heardHints.size).toBe(0);
});

test('disposed while its stream is silent, it ends', async () => {
  const follower = followerOf(async function* (_after, { opened, signal }) {
    opened();
    await new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
    yield* [];
  }, new HurriedClock());
  const next = follower[Symbol.asyncIterator]().next();
  await turn();
  expect(follower.freshness).toMatchObject({ isFollowing: true, heardAtMs: 0 });
  follower[Symbol.dispose]();
  expect((await next).done).toBe(true);
});

test('it reads no further than its consumer takes', async () => {
  let read = 0;
  const follower = followerOf(async function* (after) {
    for (let index = after + 1n; ; index += 1n) {
      read += 1;
      yield { index };
    }
  }, new HurriedClock());
  const facts = follower[Symbol.asyncIterator]();
  await facts.next();
  await turn();
  expect(read).toBe(1);
  await facts.return(undefined);
});

test('why a stream ended is told, a skip included', async () => {
  const causes: unknown[] = [];
  let streams = 0;
  const follower = followerOf(
    async function* (after) {
      streams += 1;
      if (streams === 1) {
        throw new Error('refused');
      }
      yield { index: after + (streams === 2 ? 5n : 1n) };
    },
    new HurriedClock(),
    causes,
  );
  expect(await taken(follower, 1)).toEqual([1n]);
  expect(causes.map(String)).toEqual(['Error: refused', 'Fault: the stream skipped to 5']);
});

test('an old stream has no say once it is over', async () => {
  const calls: { readonly opened: () => void; readonly signal: AbortSignal }[] = [];
  const follower = followerOf(async function* (after, call) {
    calls.push(call);
    if (calls.length > 1) {
      await new Promise((resolve) => call.signal.addEventListener('abort', resolve));
    }
    yield { index: after + 1n };
  }, new HurriedClock());
  const facts = follower[Symbol.asyncIterator]();
  await facts.next();
  const second = facts.next();
  await turn();
  await turn();
  expect(calls).toHaveLength(2);
  expect(calls[0]?.signal.aborted).toBe(true);
  calls[0]?.opened();
  expect(follower.freshness.isFollowing).toBe(false);
  calls[1]?.opened();
  expect(follower.freshness.isFollowing).toBe(true);
  follower[Symbol.dispose]();
  await second;
});

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
