import { EventEmitter } from 'node:events';
import type { ServerWritableStream } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import {
  type HealthCheckRequest,
  type HealthCheckResponse,
  HealthCheckResponse_ServingStatus as Status,
} from '#gen/grpc/health/v1/health.js';
import { Health } from './health.js';
import { healthService } from './health-service.js';
import { refusalOf } from './refusal-status.js';

/** A watcher that takes a message only when it is told to. */
class SlowCall extends EventEmitter {
  readonly request = { service: 'disk' };
  readonly written: Status[] = [];
  readonly #untaken: (() => void)[] = [];

  write({ status }: HealthCheckResponse, onTaken: () => void): boolean {
    this.written.push(status);
    this.#untaken.push(onTaken);
    return false;
  }

  take(): void {
    this.#untaken.shift()?.();
  }
}

/** A disk that comes and goes, and looks at it that happen when the test says so. */
function watched() {
  const disk = { name: 'disk', isEssential: false, isOn: true, isServing: () => disk.isOn };
  const looks: (() => void)[] = [];
  const after = (_delayMs: number, call: () => void): Disposable => {
    looks.push(call);
    return { [Symbol.dispose]: () => void looks.splice(looks.indexOf(call), 1) };
  };
  const health = new Health({ now: () => 0, monotonic: () => 0, after }, [disk]);
  const call = new SlowCall();
  const { implementation } = healthService(health, ['a.b.C']);
  const watch = implementation['watch'] as (
    call: ServerWritableStream<HealthCheckRequest, HealthCheckResponse>,
  ) => void;
  watch(call as unknown as ServerWritableStream<HealthCheckRequest, HealthCheckResponse>);
  const turn = (isOn: boolean): void => {
    disk.isOn = isOn;
    looks.shift()?.();
  };
  return { health, call, turn, looks };
}

test('a watcher that does not read costs one message, and gets the newest when it reads on', () => {
  const { call, turn } = watched();
  for (let i = 0; i < 1000; i += 1) {
    turn(i % 2 === 1);
  }
  turn(false);
  expect(call.written).toEqual([Status.SERVING]);
  call.take();
  expect(call.written).toEqual([Status.SERVING, Status.NOT_SERVING]);
  call.take();
  turn(false);
  expect(call.written).toHaveLength(2);
});

test('a drain is the last word to a watcher, read or not, and ends it by name', () => {
  const { health, call, turn, looks } = watched();
  turn(true);
  const ends: unknown[] = [];
  call.on('error', (error) => ends.push(refusalOf(error)?.reason));
  health.drain();
  expect(call.written).toEqual([Status.SERVING, Status.NOT_SERVING]);
  expect(ends).toEqual(['SERVICE_DRAINING']);
  expect(looks).toEqual([]);
});

test('a watcher that has gone is looked for no more', () => {
  const { call, looks } = watched();
  expect(looks).toHaveLength(1);
  call.emit('cancelled');
  expect(looks).toEqual([]);
});
