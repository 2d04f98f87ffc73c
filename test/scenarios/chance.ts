/**
 * Random moments that can be had again.
 *
 * The seed is printed when it is drawn. WHEELHOUSE_SEED repeats the moments of a run, though not what
 * the machine was doing at them.
 */
import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

export class Chance {
  #state: number;

  private constructor(seed: number) {
    this.#state = seed;
  }

  static drawnFor(scenario: string): Chance {
    const seed = Number(process.env['WHEELHOUSE_SEED'] ?? randomInt(2 ** 31));
    process.stderr.write(`${scenario}: WHEELHOUSE_SEED=${seed}\n`);
    return new Chance(seed);
  }

  /** A whole number, both ends included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.#next() * (most - least + 1));
  }

  oneOf<Value>(values: readonly Value[]): Value {
    return values[this.between(0, values.length - 1)] as Value;
  }

  async moment(leastMs: number, mostMs: number): Promise<void> {
    await delay(this.between(leastMs, mostMs));
  }

  /** mulberry32: small, and even enough for moments. */
  #next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
}
