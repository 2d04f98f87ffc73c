/** A gate on each way between the parties of a stack, where pauses and cuts take hold. */
import { Gate } from './gate.js';
import type { Party, Plane } from './stack.js';

interface GuardedWay {
  readonly from: 'client' | 'data';
  readonly to: Plane;
  readonly gate: Gate;
}

const WAYS = [
  { from: 'client', to: 'authority' },
  { from: 'client', to: 'data' },
  { from: 'data', to: 'authority' },
] as const;

export class Gates implements AsyncDisposable {
  readonly #ways: readonly GuardedWay[];

  private constructor(ways: readonly GuardedWay[]) {
    this.#ways = ways;
  }

  /** `listens`: where a plane listens now, `host:port`. */
  static async open(listens: (plane: Plane) => string): Promise<Gates> {
    const ways = WAYS.map(async (way) => ({
      ...way,
      gate: await Gate.open(() => listens(way.to)),
    }));
    return new Gates(await Promise.all(ways));
  }

  /** Where a party is to dial a plane. */
  endpoint(from: 'client' | 'data', to: Plane): string {
    return this.#between(from, to).gate.endpoint;
  }

  cut(one: Party, other: Party): void {
    this.#between(one, other).gate.hold('cut');
  }

  heal(one: Party, other: Party): void {
    this.#between(one, other).gate.release('cut');
  }

  /** Holds back everything that a plane would hear and say. */
  pause(plane: Plane): void {
    for (const { gate } of this.#touching(plane)) {
      gate.hold(plane);
    }
  }

  resume(plane: Plane): void {
    for (const { gate } of this.#touching(plane)) {
      gate.release(plane);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#ways.map(({ gate }) => gate[Symbol.asyncDispose]()));
  }

  #touching(plane: Plane): readonly GuardedWay[] {
    return this.#ways.filter(({ from, to }) => from === plane || to === plane);
  }

  #between(one: Party, other: Party): GuardedWay {
    const way = this.#ways.find(
      ({ from, to }) => (from === one && to === other) || (from === other && to === one),
    );
    if (way === undefined) {
      throw new Error(`there is no way between ${one} and ${other}`);
    }
    return way;
  }
}
