import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OutputRing } from './output-ring.js';

const capacityBytes = 4096;

/** Both sides of one ring, as the two threads see it. */
function twoSides(): { reader: OutputRing; main: OutputRing } {
  const main = OutputRing.allocate(capacityBytes);
  return { main, reader: OutputRing.over(main.memory) };
}

/** Writes as the reader thread does, `byteAt` saying what stands at each position. Returns how many. */
function produce(ring: OutputRing, count: number, byteAt: (position: number) => number): number {
  const span = ring.vacantSpan(count);
  const from = ring.written;
  span.forEach((_, index) => {
    span[index] = byteAt(from + index);
  });
  ring.commit(span.length);
  return span.length;
}

const byteAt = (position: number): number => (position * 7 + (position >>> 8)) & 0xff;

test('R1 holds and every byte stands at its position after any interleaving', () => {
  const step = fc.record({ produce: fc.boolean(), count: fc.integer({ min: 0, max: 6000 }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { reader, main } = twoSides();
      for (const { produce: isProducing, count } of steps) {
        const held = main.written - main.released;
        if (isProducing) {
          produce(reader, count, byteAt);
        } else {
          main.release(Math.min(count, held));
        }
        const kept = new Uint8Array(main.written - main.released);
        expect(kept.length).toBeLessThanOrEqual(capacityBytes);
        main.copy(main.released, kept.length, kept);
        expect(kept.every((byte, index) => byte === byteAt(main.released + index))).toBe(true);
      }
    }),
  );
});

test('positions go on beyond 2^32', () => {
  const { reader, main } = twoSides();
  new Int32Array(main.memory).fill(-16, 0, 1).fill(-16, 16, 17);
  expect(produce(reader, 32, byteAt)).toBe(16);
  expect(produce(reader, 16, byteAt)).toBe(16);
  expect(main.written).toBe(16);
  const kept = new Uint8Array(32);
  main.copy(main.released, 32, kept);
  expect(kept).toEqual(Uint8Array.from(kept, (_, index) => byteAt(2 ** 32 - 16 + index) & 0xff));
});

test('a full ring has no room, and parks', () => {
  const { reader, main } = twoSides();
  expect(produce(reader, capacityBytes, byteAt)).toBe(capacityBytes);
  expect(reader.vacantSpan(1)).toHaveLength(0);
  expect(reader.park()).toBe(true);
  expect(main.isParked).toBe(true);
});

test('room made before the reader parks keeps it going', () => {
  const { reader, main } = twoSides();
  produce(reader, capacityBytes, byteAt);
  expect(main.release(capacityBytes)).toBe(false);
  expect(reader.park()).toBe(false);
  expect(main.isParked).toBe(false);
});

test('a parked reader is to be told once, when an eighth is free', () => {
  const { reader, main } = twoSides();
  produce(reader, capacityBytes, byteAt);
  reader.park();
  expect(main.release(capacityBytes / 8 - 1)).toBe(false);
  expect(main.isParked).toBe(true);
  expect(main.release(1)).toBe(true);
  expect(main.isParked).toBe(false);
  expect(main.release(1)).toBe(false);
});

test('news is announced once until it is heard', () => {
  const { reader, main } = twoSides();
  expect([reader.announce(), reader.announce()]).toEqual([true, false]);
  main.hear();
  expect([reader.announce(), reader.announce()]).toEqual([true, false]);
});

test('the end is seen from the other side', () => {
  const { reader, main } = twoSides();
  expect(main.hasEnded).toBe(false);
  reader.end();
  expect(main.hasEnded).toBe(true);
});

test.each([0, 1000, 2048, 2 ** 31, 4096.5])('no ring of %d bytes', (bytes) => {
  expect(() => OutputRing.allocate(bytes)).toThrow(`a ring of ${bytes} bytes`);
});
