/**
 * Whose turn it is to ask authority for something new.
 *
 *   waiting ──its turn──► asking ──done──► over
 *      └──given up, its call is gone──────► over
 *
 * A call that is dropped leaves its question behind until authority has answered it. So each caller has
 * only so many on their way, and what waits for its turn is forgotten with its call: what one caller can
 * pile up is bounded by the streams that its connections may have open. Callers do not wait for each other.
 */
import type { Caller } from './domain/link.js';

/** One call in its caller's line. Exactly one of the two is called. */
export interface Opening {
  /** It is this call's turn. `done` is to be called once, when the answer has come. */
  ask(done: () => void): void;
  /** The call was gone before its turn came: it never asks. */
  giveUp(): void;
}

/** A call's place in its caller's line. */
export interface Turn {
  /** The call is gone. Nothing, when its turn has come. */
  giveUp(): void;
}

/** The calls of one caller. */
interface Line {
  askingCount: number;
  /** In the order in which they came. */
  readonly waiting: Set<Opening>;
}

export class Openings {
  readonly #askingMax: number;
  /** Of callers with a call that waits or asks. */
  readonly #lines = new Map<Caller, Line>();

  /** `askingMax` is for each caller. */
  constructor(askingMax: number) {
    this.#askingMax = askingMax;
  }

  /** Puts a call into its caller's line; it asks at once where there is room. */
  enter(caller: Caller, opening: Opening): Turn {
    const line = this.#lines.get(caller) ?? { askingCount: 0, waiting: new Set() };
    this.#lines.set(caller, line);
    line.waiting.add(opening);
    this.#proceed(caller, line);
    return {
      giveUp: () => {
        if (line.waiting.delete(opening)) {
          opening.giveUp();
        }
      },
    };
  }

  #proceed(caller: Caller, line: Line): void {
    for (const opening of line.waiting) {
      if (line.askingCount >= this.#askingMax) {
        return;
      }
      line.waiting.delete(opening);
      line.askingCount += 1;
      opening.ask(() => {
        line.askingCount -= 1;
        this.#proceed(caller, line);
      });
    }
    // Nobody waits while nobody asks, so this is the end of the line.
    if (line.askingCount === 0) {
      this.#lines.delete(caller);
    }
  }
}
