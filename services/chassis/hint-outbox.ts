/**
 * Hints on their way to the broker: one turn in flight, and behind it the newest of each plane.
 *
 * A hint says how far there is to read, so a newer one makes an older one worthless. That is the
 * bound: whatever the broker does, and however fast facts come, what waits is one hint a plane.
 */
import type { PlaneHint } from './bus.js';
import type { HintingPlane } from './bus-subjects.js';

export class HintOutbox {
  readonly #publish: (hints: ReadonlyMap<HintingPlane, PlaneHint>) => Promise<void>;
  readonly #waiting = new Map<HintingPlane, PlaneHint>();
  readonly #newest = new Map<HintingPlane, PlaneHint>();
  /** Which connection the turn in flight belongs to: one that is over has no say any more. */
  #round = 0;
  #isStarted = false;
  #isBusy = false;

  /** `publish` resolves when the broker has taken the hints, and rejects when it never will. */
  constructor(publish: (hints: ReadonlyMap<HintingPlane, PlaneHint>) => Promise<void>) {
    this.#publish = publish;
  }

  /** How many hints wait, at most one a plane. */
  get waiting(): number {
    return this.#waiting.size;
  }

  put(plane: HintingPlane, hint: PlaneHint): void {
    this.#newest.set(plane, hint);
    this.#waiting.set(plane, hint);
    this.#pump();
  }

  /** There is a broker. What waited goes first. */
  start(): void {
    this.#round += 1;
    this.#isStarted = true;
    this.#isBusy = false;
    this.#pump();
  }

  /** There is none. The newest hints wait for the next. */
  stop(): void {
    this.#round += 1;
    this.#isStarted = false;
  }

  #pump(): void {
    if (!this.#isStarted || this.#isBusy || this.#waiting.size === 0) {
      return;
    }
    const round = this.#round;
    const turn = new Map(this.#waiting);
    this.#waiting.clear();
    this.#isBusy = true;
    this.#publish(turn).then(
      () => this.#landed(round),
      () => this.#putBack(turn, round),
    );
  }

  #landed(round: number): void {
    if (round === this.#round) {
      this.#isBusy = false;
      this.#pump();
    }
  }

  /** It may have arrived: the next connection says it once more, under the same Nats-Msg-Id. */
  #putBack(turn: ReadonlyMap<HintingPlane, PlaneHint>, round: number): void {
    for (const [plane, hint] of turn) {
      if (this.#newest.get(plane) === hint) {
        this.#waiting.set(plane, hint);
      }
    }
    if (round === this.#round) {
      this.#isBusy = false;
      this.#isStarted = false;
    } else {
      this.#pump();
    }
  }
}
