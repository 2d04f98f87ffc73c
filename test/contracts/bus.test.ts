/** One contract for the bus with a broker and without: nothing that is true depends on it. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { Writable } from 'node:stream';
import type { NatsConnection } from 'nats';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { type Bus, openBus } from '#chassis/bus.js';
import type { BusService } from '#chassis/bus-users.js';
import { createLogger } from '#chassis/logger.js';
import { Hint } from '#gen/wheelhouse/bus/v1/bus.js';
import { eventually } from '../stack/eventually.js';
import { Broker, freePort } from './broker.js';
import { onEachBroker } from './broker-kinds.js';

const silent = createLogger('test', 'silent');
const life = 'wd_1';

function busAt(broker: Broker, service: BusService, logger = silent): Bus {
  const { address, stateDir } = broker;
  return openBus({ address, service, stateDir, seedPath: '', logger });
}

function busWithSeed(address: string, seedPath: string, logger = silent): Bus {
  return openBus({ address, service: 'authority', stateDir: '/nowhere', seedPath, logger });
}

/** A logger whose lines are kept. */
function listening(): { readonly logger: typeof silent; readonly lines: string[] } {
  const lines: string[] = [];
  const sink = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(chunk.toString('utf8'));
      done();
    },
  });
  return { logger: pino(sink) as typeof silent, lines };
}

/** Says a hint until it is heard: who subscribes may be a moment later than who speaks. */
async function arrives(bus: Bus, index: bigint, heard: readonly bigint[]): Promise<void> {
  await eventually(
    `hint ${index} arrives`,
    () => {
      bus.hint('authority', { index, life });
      return heard.includes(index);
    },
    25_000,
  );
}

describe('a bus', () => {
  test.each(['direct', 'nats'])(
    '%s: a hint never throws, waits or needs anyone to hear it',
    async (kind) => {
      const address = kind === 'direct' ? kind : `nats://127.0.0.1:${await freePort()}`;
      await using bus = busWithSeed(address, '');
      using _heard = bus.onHint('authority', () => undefined);
      expect(bus.isConnected).toBe(kind === 'direct');
      for (let index = 0n; index < 100n; index += 1n) {
        bus.hint('authority', { index, life });
      }
    },
  );

  test.each(['carrier-pigeon', 'nats://', 'nats://user:word@host:1', 'tls://host:1'])(
    'that is none is said at the start: %s',
    (address) => {
      expect(() => busWithSeed(address, '')).toThrow(/direct or nats/);
    },
  );

  test('a broker that takes calls and drops them is said once, and dialled ever less often', async () => {
    const dialledAtMs: number[] = [];
    const deaf = createServer((socket) => {
      dialledAtMs.push(performance.now());
      socket.destroy();
    }).listen(0, '127.0.0.1');
    await once(deaf, 'listening');
    const { logger, lines } = listening();
    await using _bus = busWithSeed(
      `nats://127.0.0.1:${(deaf.address() as AddressInfo).port}`,
      '',
      logger,
    );
    await eventually('it is dialled', () => dialledAtMs.length >= 4);
    const pauses = dialledAtMs.slice(1).map((at, index) => at - (dialledAtMs[index] ?? 0));
    for (const [index, leastMs] of [250, 500, 1_000].entries()) {
      expect(pauses[index]).toBeGreaterThanOrEqual(leastMs - 5);
    }
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('bus-unreachable');
    deaf.close();
  });

  test('a seed that is not there, or is none, is said by name', async () => {
    const { logger, lines } = listening();
    const address = `nats://127.0.0.1:${await freePort()}`;
    await using _missing = busWithSeed(address, '/nowhere/authority.seed', logger);
    await eventually('it is said', () => lines.join('').includes('bus-seed-unusable'));
  });
});

onEachBroker((program) => {
  test('hints arrive, from each plane its own', async (context) => {
    await using broker = await Broker.started(program(context));
    await using sender = busAt(broker, 'authority');
    await using receiver = busAt(broker, 'control');
    const heard: bigint[] = [];
    const others: bigint[] = [];
    using _authority = receiver.onHint('authority', (index) => heard.push(index));
    using _provenance = receiver.onHint('provenance', (index) => others.push(index));
    await arrives(sender, 7n, heard);
    expect(new Set(heard)).toEqual(new Set([7n]));
    expect(others).toEqual([]);
  });

  test('a hint is its index and its name for repetitions, and not a byte more', async (context) => {
    await using broker = await Broker.started(program(context));
    const everything = await broker.connect('admin');
    const seen: { subject: string; bytes: string; headers: string }[] = [];
    everything.subscribe('>', {
      callback: (_error, { subject, data, headers }) => {
        const named = headers?.keys().map((key) => `${key}: ${headers.values(key).join()}`);
        const bytes = Buffer.from(data).toString('hex');
        seen.push({ subject, bytes, headers: named?.join('\n') ?? '' });
      },
    });
    await everything.flush();
    await using bus = busAt(broker, 'authority');
    bus.hint('authority', { index: 300n, life });
    await eventually('it is heard', () => seen.length > 0);
    expect(seen).toEqual([
      {
        subject: 'wheelhouse.hint.authority',
        bytes: Buffer.from(Hint.encode({ index: 300n }).finish()).toString('hex'),
        headers: 'Nats-Msg-Id: authority:wd_1:300',
      },
    ]);
    expect(seen[0]?.bytes).toBe('08ac02');
    await everything.close();
  });

  test('a deployment that captures hints in a stream keeps a repeated one once', async (context) => {
    const jetstream = 'jetstream { store_dir: "./stored", max_file: 16777216 }';
    await using broker = await Broker.started(program(context), jetstream);
    const everything = await broker.connect('admin');
    const manager = await everything.jetstreamManager();
    await manager.streams.add({ name: 'hints', subjects: ['wheelhouse.hint.>'] });
    const heard: bigint[] = [];
    const hearing = await listener(broker, heard);
    await using first = busAt(broker, 'authority');
    await using second = busAt(broker, 'authority');
    first.hint('authority', { index: 7n, life });
    second.hint('authority', { index: 7n, life });
    await eventually('both are heard', () => heard.length === 2);
    second.hint('authority', { index: 7n, life: 'wd_2' });
    await eventually('so is another life’s', () => heard.length === 3);
    expect((await manager.streams.info('hints')).state.messages).toBe(2);
    await hearing.close();
    await everything.close();
  });

  test('a broker that comes late, dies and returns empty costs hints and nothing else', async (context) => {
    await using broker = await Broker.prepared(program(context));
    await using sender = busAt(broker, 'authority');
    await using receiver = busAt(broker, 'control');
    const heard: bigint[] = [];
    using _authority = receiver.onHint('authority', (index) => heard.push(index));
    sender.hint('authority', { index: 1n, life });
    await broker.start();
    await arrives(sender, 2n, heard);
    expect(sender.isConnected).toBe(true);
    await broker.kill();
    await eventually('it knows that it is cut off', () => !sender.isConnected);
    sender.hint('authority', { index: 3n, life });
    await broker.start();
    await arrives(sender, 4n, heard);
  });

  test('what was said last while the broker was away is heard when it is back', async (context) => {
    await using broker = await Broker.started(program(context));
    await using bus = busAt(broker, 'authority');
    const heard: bigint[] = [];
    const first = await listener(broker, heard);
    await arrives(bus, 1n, heard);
    await broker.kill();
    await first.closed();
    for (let index = 2n; index <= 1_000n; index += 1n) {
      bus.hint('authority', { index, life });
    }
    await broker.start();
    const second = await listener(broker, heard);
    await eventually('the newest is heard', () => heard.includes(1_000n), 20_000);
    expect(heard.filter((index) => index > 1n && index < 999n)).toEqual([]);
    await second.close();
  });

  test('what is no hint, or nobody’s, is as good as lost', async (context) => {
    await using broker = await Broker.started(program(context));
    await using sender = busAt(broker, 'authority');
    await using receiver = busAt(broker, 'control');
    const heard: bigint[] = [];
    using _authority = receiver.onHint('authority', (index) => heard.push(index));
    const stranger = await broker.connect('admin');
    for (const bytes of [[], [0xff, 0xff, 0xff], [0x08], new Array<number>(1_000).fill(0x80)]) {
      stranger.publish('wheelhouse.hint.authority', Uint8Array.from(bytes));
    }
    await arrives(sender, 9n, heard);
    expect(heard.filter((index) => index !== 9n && index !== 0n)).toEqual([]);
    await stranger.close();
  });

  test('a user that the broker does not know is said by name, and asks ever less often', async (context) => {
    await using broker = await Broker.started(program(context));
    const { logger, lines } = listening();
    await using bus = busWithSeed(broker.address, '', logger);
    bus.hint('authority', { index: 1n, life });
    const startedAtMs = performance.now();
    const refused = (): number => (broker.log.match(/authentication error/gi) ?? []).length;
    await eventually('it has asked again and again', () => refused() >= 4);
    // 250 + 500 + 1,000 ms lie between four attempts.
    expect(performance.now() - startedAtMs).toBeGreaterThan(1_500);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('bus-user-refused');
  });

  test('a permission that is missing is said once, by name, and costs nothing else', async (context) => {
    await using broker = await Broker.started(program(context));
    const { logger, lines } = listening();
    await using bus = busAt(broker, 'data', logger);
    using _heard = bus.onHint('provenance', () => undefined);
    await eventually('it is found', () => lines.join('').includes('bus found'));
    for (let index = 1n; index <= 1_000n; index += 1n) {
      bus.hint('authority', { index, life });
      await new Promise((resolve) => setImmediate(resolve));
    }
    await eventually('it is said', () => lines.join('').includes('bus-permission-refused'));
    expect(lines.filter((line) => line.includes('bus-permission-refused'))).toHaveLength(1);
    // One, and those that were on their way before the refusal had come.
    expect((broker.log.match(/Publish Violation/g) ?? []).length).toBeLessThan(10);
  });

  test('a broker that is stopped where it stands costs no memory, and is caught up with', async (context) => {
    await using broker = await Broker.started(program(context));
    await using bus = busAt(broker, 'authority');
    const heard: bigint[] = [];
    const hearing = await listener(broker, heard);
    await arrives(bus, 1n, heard);
    broker.pause();
    const before = process.memoryUsage().rss;
    let slowestMs = 0;
    for (let index = 2n; index <= 200_000n; index += 1n) {
      const startedAtMs = performance.now();
      bus.hint('authority', { index, life });
      slowestMs = Math.max(slowestMs, performance.now() - startedAtMs);
      if (index % 1_000n === 0n) {
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    const grownBytes = process.memoryUsage().rss - before;
    process.stdout.write(
      `200,000 hints at a stopped broker: ${(grownBytes / 1_048_576).toFixed(1)} MiB more, the slowest ${slowestMs.toFixed(1)} ms\n`,
    );
    expect(grownBytes).toBeLessThan(32 * 1_048_576);
    broker.resume();
    await eventually('the newest is heard', () => heard.includes(200_000n), 20_000);
    expect(heard.length).toBeLessThan(20);
    await hearing.close();
  });

  test('closing does not wait for a broker that is stopped, nor for one that is away', async (context) => {
    await using broker = await Broker.started(program(context));
    const { logger, lines } = listening();
    const connected = busAt(broker, 'authority', logger);
    await eventually('it is found', () => lines.join('').includes('bus found'));
    broker.pause();
    const dialling = busAt(broker, 'control');
    await new Promise((resolve) => setImmediate(resolve));
    const startedAtMs = performance.now();
    await connected[Symbol.asyncDispose]();
    await dialling[Symbol.asyncDispose]();
    expect(performance.now() - startedAtMs).toBeLessThan(2_000);
    broker.resume();
  });
});

/** Hears authority's hints as control may. */
async function listener(broker: Broker, heard: bigint[]): Promise<NatsConnection> {
  const connection = await broker.connect('control');
  connection.subscribe('wheelhouse.hint.authority', {
    callback: (_error, { data }) => heard.push(Hint.decode(data).index),
  });
  await connection.flush();
  return connection;
}
