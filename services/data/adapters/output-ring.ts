/**
 * The bytes of one terminal between the thread that reads them and the thread that passes them on.
 *
 * One writer (the reader thread) and one reader (the main thread), no lock. Invariant R1:
 * released <= written <= released + capacity. Both only grow; in shared memory they are kept modulo
 * 2^32, which loses nothing as they are never a capacity (at most 2^30) apart.
 *
 * Two flags pass between the threads so that neither waits and no wake-up is lost; each is set with
 * a store and taken with an exchange, after which the position it stands for is looked at again:
 *   parked     the reader has stopped for want of room; whoever takes it makes the reader go on.
 *   announced  the main thread has been told that there is something new and has not looked yet.
 */
import { bug } from '#kernel/bug.js';

// One cache line for each side's position: the threads do not contend for the other's.
const writtenWord = 0;
const releasedWord = 16;
const parkedWord = 32;
const announcedWord = 33;
const endedWord = 34;
const headerBytes = 256;

export class OutputRing {
  readonly memory: SharedArrayBuffer;
  readonly capacityBytes: number;
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #mask: number;

  private constructor(memory: SharedArrayBuffer) {
    this.memory = memory;
    this.capacityBytes = memory.byteLength - headerBytes;
    this.#words = new Int32Array(memory, 0, headerBytes / Int32Array.BYTES_PER_ELEMENT);
    this.#bytes = new Uint8Array(memory, headerBytes);
    this.#mask = this.capacityBytes - 1;
  }

  /** A new, empty ring. The capacity is a power of two from 4 KiB to 1 GiB. */
  static allocate(capacityBytes: number): OutputRing {
    if (!Number.isInteger(Math.log2(capacityBytes)) || !isWithin(capacityBytes, 2 ** 12, 2 ** 30)) {
      bug(`a ring of ${capacityBytes} bytes`);
    }
    return new OutputRing(new SharedArrayBuffer(headerBytes + capacityBytes));
  }

  /** The same ring, seen from another thread. */
  static over(memory: SharedArrayBuffer): OutputRing {
    return new OutputRing(memory);
  }

  /** Position after the last byte written, modulo 2^32. */
  get written(): number {
    return Atomics.load(this.#words, writtenWord) >>> 0;
  }

  /** Position of the oldest byte kept, modulo 2^32. */
  get released(): number {
    return Atomics.load(this.#words, releasedWord) >>> 0;
  }

  get isParked(): boolean {
    return Atomics.load(this.#words, parkedWord) === 1;
  }

  get hasEnded(): boolean {
    return Atomics.load(this.#words, endedWord) === 1;
  }

  /** Reader thread: where the next bytes go, at most `countMax` and not beyond the ring's seam. Empty when full. */
  vacantSpan(countMax: number): Uint8Array {
    const start = this.written & this.#mask;
    const count = Math.min(this.#vacantBytes(), this.capacityBytes - start, countMax);
    return this.#bytes.subarray(start, start + count);
  }

  /** Reader thread: the first `count` bytes of the vacant span are there now. */
  commit(count: number): void {
    Atomics.add(this.#words, writtenWord, count);
  }

  /** Reader thread: stops for want of room. False when room was made meanwhile: then it has not stopped. */
  park(): boolean {
    Atomics.store(this.#words, parkedWord, 1);
    return !this.#unparkIfRoomy();
  }

  /** Reader thread: whether the main thread needs to be told that there is news. */
  announce(): boolean {
    return Atomics.exchange(this.#words, announcedWord, 1) === 0;
  }

  /** Reader thread: no byte follows the last one written. */
  end(): void {
    Atomics.store(this.#words, endedWord, 1);
  }

  /** Main thread: before it looks at what is new, so that what comes while it looks is announced again. */
  hear(): void {
    Atomics.store(this.#words, announcedWord, 0);
  }

  /** Main thread: copies `count` bytes from a position on, which must all be there. */
  copy(from: number, count: number, target: Uint8Array): void {
    const start = from & this.#mask;
    const beforeSeam = Math.min(count, this.capacityBytes - start);
    target.set(this.#bytes.subarray(start, start + beforeSeam));
    if (count > beforeSeam) {
      target.set(this.#bytes.subarray(0, count - beforeSeam), beforeSeam);
    }
  }

  /** Main thread: gives up `count` bytes from the oldest on. True when the reader had stopped and has to be told. */
  release(count: number): boolean {
    Atomics.add(this.#words, releasedWord, count);
    return this.#unparkIfRoomy();
  }

  /**
   * An eighth of the ring, not one byte: going on costs a system call on each side, and a reader that
   * frees a little at a time would pay it for every little.
   */
  #unparkIfRoomy(): boolean {
    return (
      this.isParked &&
      this.#vacantBytes() >= this.capacityBytes / 8 &&
      Atomics.exchange(this.#words, parkedWord, 0) === 1
    );
  }

  #vacantBytes(): number {
    return this.capacityBytes - ((this.written - this.released) >>> 0);
  }
}

function isWithin(value: number, low: number, high: number): boolean {
  return value >= low && value <= high;
}
