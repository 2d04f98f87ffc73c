/** One contract for the bus with a broker and without: nothing that is true depends on it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { connect } from 'nats';
import { afterEach, describe, expect, test } from 'vitest';
import { openBus } from '#chassis/bus.js';
import { createLogger } from '#chassis/logger.js';
import { eventually } from '../stack/eventually.js';
import { needs } from '../stack/machine.js';

const logger = createLogger('test', 'silent');
const brokers: ChildProcess[] = [];

afterEach(async () => {
  for (const broker of brokers.splice(0)) {
    if (broker.signalCode === null) {
      const ended = once(broker, 'exit');
      broker.kill('SIGKILL');
      await ended;
    }
  }
});

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function broker(port: number): Promise<ChildProcess> {
  const process = spawn('nats-server', ['-a', '127.0.0.1', '-p', String(port)], {
    stdio: 'ignore',
  });
  brokers.push(process);
  const isUp = async (): Promise<boolean> => {
    const connection = await connect({ servers: `nats://127.0.0.1:${port}` });
    await connection.close();
    return true;
  };
  await eventually('the broker answers', isUp);
  return process;
}

describe('a bus', () => {
  test.each(['direct', 'nats'])(
    '%s: a hint never throws, waits or needs anyone to hear it',
    async (kind) => {
      const address = kind === 'direct' ? kind : `nats://127.0.0.1:${await freePort()}`;
      await using bus = openBus(address, logger);
      using _heard = bus.onHint('authority', () => undefined);
      for (let index = 0n; index < 100n; index += 1n) {
        bus.hint('authority', index);
      }
    },
  );

  test('that is none is said at the start', () => {
    expect(() => openBus('carrier-pigeon', logger)).toThrow(/direct or nats/);
  });

  test('nats: hints arrive, from each plane its own', async (context) => {
    needs(context, 'nats-server');
    const port = await freePort();
    await broker(port);
    await using sender = openBus(`nats://127.0.0.1:${port}`, logger);
    await using receiver = openBus(`nats://127.0.0.1:${port}`, logger);
    const heard: bigint[] = [];
    const others: bigint[] = [];
    using _authority = receiver.onHint('authority', (index) => heard.push(index));
    using _provenance = receiver.onHint('provenance', (index) => others.push(index));
    await eventually('a hint arrives', () => {
      sender.hint('authority', 7n);
      return heard.length > 0;
    });
    expect(new Set(heard)).toEqual(new Set([7n]));
    expect(others).toEqual([]);
  });

  test('nats: a broker that comes late, dies and returns empty costs hints and nothing else', async (context) => {
    needs(context, 'nats-server');
    const port = await freePort();
    await using bus = openBus(`nats://127.0.0.1:${port}`, logger);
    const heard: bigint[] = [];
    using _authority = bus.onHint('authority', (index) => heard.push(index));
    bus.hint('authority', 1n);
    const first = await broker(port);
    const arrives = (index: bigint) => () => {
      bus.hint('authority', index);
      return heard.includes(index);
    };
    await eventually('it is found when it comes', arrives(2n), 20_000);
    first.kill('SIGKILL');
    await once(first, 'exit');
    bus.hint('authority', 3n);
    await broker(port);
    await eventually('it is found when it is back', arrives(4n), 20_000);
  });

  test('nats: what is no hint is as good as lost', async (context) => {
    needs(context, 'nats-server');
    const port = await freePort();
    await broker(port);
    await using bus = openBus(`nats://127.0.0.1:${port}`, logger);
    const heard: bigint[] = [];
    using _authority = bus.onHint('authority', (index) => heard.push(index));
    const stranger = await connect({ servers: `nats://127.0.0.1:${port}` });
    await eventually('a real one arrives after garbage', () => {
      stranger.publish('wheelhouse.hint.authority', Uint8Array.of(0xff, 0xff, 0xff));
      bus.hint('authority', 9n);
      return heard.includes(9n);
    });
    await stranger.close();
  });
});
