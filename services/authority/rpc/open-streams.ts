/** Every stream that would outlast a drain by itself, so that it can be ended by name. */
import type { Refusal } from '#kernel/refusal.js';

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

  enter(stream: Refusable): void {
    this.#streams.add(stream);
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
      stream.refuse({ reason: 'SERVICE_DRAINING', facts: {} });
    }
  }
}
