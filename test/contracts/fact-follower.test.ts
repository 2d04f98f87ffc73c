/**
 * One contract for following facts, whatever the bus does: a live authority, real brokers, and a follower
 * that has every fact once and in order.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { type Bus, openBus } from '#chassis/bus.js';
import { FactFollower } from '#chassis/fact-follower.js';
import { clientOptions } from '#chassis/grpc-client.js';
import { createLogger } from '#chassis/logger.js';
import { systemClock } from '#chassis/system-clock.js';
import { tailStream } from '#chassis/tail-stream.js';
import {
  AuthorityServiceClient,
  type TailResponse,
} from '#gen/wheelhouse/authority/v1/authority.js';
import { Hint } from '#gen/wheelhouse/bus/v1/bus.js';
import type { Clock } from '#kernel/clock.js';
import { AgentRun, Operator, raw } from '../scenarios/actors.js';
import { expectNoBugs, journalOf } from '../scenarios/aftermath.js';
import { Chance } from '../scenarios/chance.js';
import { eventually } from '../stack/eventually.js';
import { startProcesses } from '../stack/processes.js';
import type { Stack } from '../stack/stack.js';
import { Broker } from './broker.js';
import { onEachBroker } from './broker-kinds.js';
import { HintMischief } from './hint-mischief.js';

const logger = createLogger('test', 'silent');

/** Time of which nothing ever comes due: who waits, waits for a hint. */
const noTimer: Clock = {
  ...systemClock,
  after: () => ({ [Symbol.dispose]: () => undefined }),
};

interface FollowingOptions {
  readonly bus: Bus;
  readonly clock?: Clock;
  readonly after?: bigint;
  /** What the consumer does with each fact before it takes the next. */
  readonly chew?: () => Promise<void>;
}

/** A follower with its consumer, as a plane would have one. */
class Followed implements AsyncDisposable {
  readonly facts: TailResponse[] = [];
  readonly follower: FactFollower<TailResponse>;
  readonly #eating: Promise<void>;

  private constructor(follower: FactFollower<TailResponse>, chew?: () => Promise<void>) {
    this.follower = follower;
    this.#eating = this.#eat(chew);
  }

  static async begin(
    stack: Stack,
    { bus, clock, after, chew }: FollowingOptions,
  ): Promise<Followed> {
    const credentials = await stack.credentialsFor('service', 'control', 'authority');
    const follower = new FactFollower<TailResponse>({
      // A client for each stream: what is dialled anew does not wait for an old connection's backoff.
      open: async function* (afterIndex, call) {
        const client = new AuthorityServiceClient(
          stack.endpoints.authority,
          credentials,
          clientOptions,
        );
        try {
          yield* tailStream(client.tail({ afterIndex }), call);
        } finally {
          client.close();
        }
      },
      onHint: (hear) => bus.onHint('authority', hear),
      clock: clock ?? systemClock,
      after: after ?? 0n,
      onCutOff: () => undefined,
    });
    return new Followed(follower, chew);
  }

  /** Until it has what authority had told when this was asked. */
  async catchesUp(deadlineMs = 20_000): Promise<void> {
    await eventually(
      'the follower has the last fact',
      () => {
        const last = this.facts.at(-1);
        return last !== undefined && isMarker(last);
      },
      deadlineMs,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.follower[Symbol.dispose]();
    await this.#eating;
  }

  async #eat(chew?: () => Promise<void>): Promise<void> {
    for await (const fact of this.follower) {
      this.facts.push(fact);
      await chew?.();
    }
  }
}

/** The last thing that a busy operator does. */
function isMarker({ kind, body }: TailResponse): boolean {
  return kind === 'worker-opened' && Buffer.from(body).includes('"last"');
}

/** Opens and closes workers, and leaves `last` open. */
async function busy(stack: Stack, name: string, rounds: number): Promise<void> {
  await using operator = await Operator.at(stack);
  for (let round = 0; round < rounds; round += 1) {
    const worker = await operator.opens(`${name}-${round}`);
    await operator.workers.close(worker);
  }
}

async function marks(stack: Stack): Promise<void> {
  const operator = await Operator.at(stack);
  await operator.opens('last');
  // Its farewell would be no fact of this authority's any more: the journal is read after a crash.
  await operator[Symbol.asyncDispose]();
}

/** What it has is what the journal holds, from the first fact on, and nothing else. */
function expectExact(stack: Stack, { facts }: Followed): void {
  const journal = journalOf(stack).map(({ index, kind, body }) => ({ index, kind, body }));
  const had = facts.map(({ index, kind, body }) => ({
    index: Number(index),
    kind,
    body: JSON.parse(Buffer.from(body).toString('utf8')) as unknown,
  }));
  expect(had).toEqual(journal.slice(0, had.length));
  expect(had.length).toBeGreaterThan(10);
}

async function crashed(stack: Stack): Promise<void> {
  await stack.crash('authority');
  await stack.restart('authority');
  await stack.joined();
}

function authorityAt(broker: Broker | undefined): Record<string, string> {
  return broker === undefined
    ? { WHEELHOUSE_BUS: 'direct' }
    : { WHEELHOUSE_BUS: broker.address, WHEELHOUSE_BUS_SEED: broker.seedPath('authority') };
}

function controlBus(broker: Broker | undefined): Bus {
  const address = broker?.address ?? 'direct';
  const stateDir = broker?.stateDir ?? '/nowhere';
  return openBus({ address, service: 'control', stateDir, seedPath: '', logger });
}

/** The contract itself: what is had is what became true, through crashes of the owner. */
async function followsThroughCrashes(broker: Broker | undefined): Promise<void> {
  await using stack = await startProcesses({ settings: { authority: authorityAt(broker) } });
  await using bus = controlBus(broker);
  await using followed = await Followed.begin(stack, { bus });
  for (let life = 0; life < 3; life += 1) {
    await busy(stack, `life-${life}`, 5);
    await crashed(stack);
  }
  await marks(stack);
  await followed.catchesUp();
  await stack.crash('authority');
  expectExact(stack, followed);
  await eventually('it says that it is cut off', () => !followed.follower.freshness.isFollowing);
  expect(followed.follower.freshness.cutOffAtMs).toBeTypeOf('number');
  expectNoBugs(stack);
}

describe('bus=direct', () => {
  test('a follower has every fact once and in order, through crashes of their owner', async () => {
    await followsThroughCrashes(undefined);
  });

  test('a stream that is open and quiet is known to be open', async () => {
    await using stack = await startProcesses();
    await using bus = controlBus(undefined);
    await using first = await Followed.begin(stack, { bus });
    await eventually('it has what there is', () => first.facts.length > 0);
    const after = first.follower.freshness.lastIndex;
    await using second = await Followed.begin(stack, { bus, after });
    await eventually('it follows', () => second.follower.freshness.isFollowing);
    expect(second.facts).toEqual([]);
  });

  test('a slow consumer holds its stream, and nothing else', async () => {
    await using stack = await startProcesses();
    await using bus = controlBus(undefined);
    let isSlow = true;
    const chew = async (): Promise<void> => {
      while (isSlow) {
        await delay(10);
      }
    };
    await using followed = await Followed.begin(stack, { bus, chew });
    await eventually('it has the first', () => followed.facts.length === 1);
    await busy(stack, 'crowd', 60);
    expect(followed.facts).toHaveLength(1);
    isSlow = false;
    await marks(stack);
    await followed.catchesUp();
    await stack.crash('authority');
    expectExact(stack, followed);
  });
});

onEachBroker((program) => {
  test('a follower has every fact once and in order, through crashes of their owner', async (context) => {
    await using broker = await Broker.started(program(context));
    await followsThroughCrashes(broker);
  });

  test('hints lost, repeated, late, out of order and invented change nothing', async (context) => {
    const chance = Chance.drawnFor('mischief with hints');
    await using said = await Broker.started(program(context));
    await using heard = await Broker.started(program(context));
    await using mischief = await HintMischief.between(said, heard, chance);
    await using stack = await startProcesses({ settings: { authority: authorityAt(said) } });
    await using bus = controlBus(heard);
    await using followed = await Followed.begin(stack, { bus });
    for (let life = 0; life < 2; life += 1) {
      await busy(stack, `life-${life}`, 15);
      await crashed(stack);
    }
    await marks(stack);
    await followed.catchesUp();
    await stack.crash('authority');
    expectExact(stack, followed);
    process.stdout.write(`hints: ${JSON.stringify(mischief.done)}\n`);
    const { lost, repeated, delayed, invented } = mischief.done;
    expect(lost + repeated + delayed + invented).toBeGreaterThan(0);
  });

  test('the broker killed, empty, stopped and killed again changes nothing', async (context) => {
    await using broker = await Broker.started(program(context));
    await using stack = await startProcesses({ settings: { authority: authorityAt(broker) } });
    await using bus = controlBus(broker);
    await using followed = await Followed.begin(stack, { bus });
    await busy(stack, 'before', 3);
    await broker.kill();
    await busy(stack, 'without', 3);
    await broker.start();
    await busy(stack, 'empty', 3);
    broker.pause();
    const startedAtMs = performance.now();
    await busy(stack, 'stopped', 10);
    const stoppedMs = performance.now() - startedAtMs;
    process.stdout.write(`20 commands with a stopped broker: ${Math.round(stoppedMs)} ms\n`);
    await crashed(stack);
    await busy(stack, 'new-life', 3);
    broker.resume();
    await broker.kill();
    await marks(stack);
    await followed.catchesUp();
    await stack.crash('authority');
    expectExact(stack, followed);
    expectNoBugs(stack);
  });

  test('cut off and with no timer of its own, a hint alone brings a follower back', async (context) => {
    await using broker = await Broker.started(program(context));
    await using stack = await startProcesses({ settings: { authority: authorityAt(broker) } });
    await using bus = controlBus(broker);
    await using followed = await Followed.begin(stack, { bus, clock: noTimer });
    await eventually('it follows', () => followed.follower.freshness.isFollowing);
    await stack.crash('authority');
    await eventually('it is cut off', () => !followed.follower.freshness.isFollowing);
    // Until the least time between two diallings has passed, or a hint would ask the clock that stands.
    await delay(200);
    await stack.restart('authority');
    await eventually('it is back', () => followed.follower.freshness.isFollowing);
  });

  test('a subscriber that reads nothing is cut off, and nobody else notices', async (context) => {
    await using broker = await Broker.started(program(context));
    await using bus = controlBus(broker);
    const heard: bigint[] = [];
    using _hearing = bus.onHint('authority', (index) => heard.push(index));
    const stalled = await broker.connect('control');
    stalled.subscribe('wheelhouse.hint.authority', { callback: () => undefined });
    await stalled.flush();
    socketOf(stalled).pause();
    const speaker = await broker.connect('authority');
    const padding = new Uint8Array(900);
    await eventually('it is cut off', async () => {
      for (let count = 0; count < 5_000; count += 1) {
        speaker.publish('wheelhouse.hint.authority', padding);
      }
      await speaker.flush();
      return broker.log.includes('Slow Consumer');
    });
    await using authority = openBus({
      address: broker.address,
      service: 'authority',
      stateDir: broker.stateDir,
      seedPath: '',
      logger,
    });
    authority.hint('authority', { index: 5n, life: 'wd_1' });
    await eventually('another still hears', () => heard.includes(5n));
    await stalled.close();
    await speaker.close();
  });

  test('what a live authority says are indexes; a look says nothing at all', async (context) => {
    await using broker = await Broker.started(program(context));
    const everything = await broker.connect('admin');
    const heard: { subject: string; data: Uint8Array; named: string }[] = [];
    everything.subscribe('>', {
      callback: (_error, { subject, data, headers }) => {
        const named = headers?.keys().map((key) => `${key}: ${headers.values(key).join()}`);
        heard.push({ subject, data: Uint8Array.from(data), named: named?.join('\n') ?? '' });
      },
    });
    await everything.flush();
    await using stack = await startProcesses({ settings: { authority: authorityAt(broker) } });
    await using operator = await Operator.at(stack);
    const worker = await operator.opens('shown');
    const agent = await operator.identityOf('shown');
    await using run = await AgentRun.starts(stack, agent, worker, raw('echo here; exec cat'));
    await run.shows(/here/);
    const before = await stillCount(heard);
    const look = await operator.looksAt(worker);
    await look.presentation.detach();
    expect(await stillCount(heard)).toBe(before);
    await operator.workers.close(worker);
    await eventually('its end is hinted', () => heard.length > before);
    for (const { subject, data, named } of heard) {
      const { index } = Hint.decode(data);
      expect(subject).toBe('wheelhouse.hint.authority');
      expect(Buffer.from(data)).toEqual(Buffer.from(Hint.encode({ index }).finish()));
      expect(named).toMatch(new RegExp(`^Nats-Msg-Id: authority:wd_[\\w-]+:${index}$`));
    }
    await everything.close();
  });
});

/** How many there are once no more come. */
async function stillCount(heard: readonly unknown[]): Promise<number> {
  return await eventually('the bus is still', async () => {
    const before = heard.length;
    await delay(300);
    return before > 0 && heard.length === before ? before : undefined;
  });
}

/** The client's socket: there is no public way to stop reading. */
function socketOf(connection: object): { pause(): void } {
  const { protocol } = connection as {
    protocol: { transport: { socket: { pause(): void } } };
  };
  return protocol.transport.socket;
}
