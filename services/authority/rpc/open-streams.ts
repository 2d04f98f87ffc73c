/** Every stream that would outlast a drain by itself, so that it can be ended by name. */
import type { Refusal } from '#kernel/refusal.js';

const draining: Refusal = { reason: 'SERVICE_DRAINING', facts: {} };

interface Refusable {
  refuse(refusal: Refusal): void;
}

export class OpenStreams {
  readonly #streams = new Set<Refusable>();
  #isDraining = false;

  /** From now on what ends, ends because the service does: nothing is made of it. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** False while draining: the stream is refused SERVICE_DRAINING, and is not to be served. */
  enter(stream: Refusable): boolean {
    if (this.#isDraining) {
      stream.refuse(draining);
      return false;
    }
    this.#streams.add(stream);
    return true;
  }

  leave(stream: Refusable): void {
    this.#streams.delete(stream);
  }

  /** What ends from now on leaves no trace either, and nobody is told. */
  abandon(): void {
    this.#isDraining = true;
    this.#streams.clear();
  }

  /** Ends every open stream by name. */
  drain(): void {
    this.#isDraining = true;
    for (const stream of [...this.#streams]) {
      stream.refuse(draining);
    }
  }
}
