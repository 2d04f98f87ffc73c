/**
 * How a service is: the whole of it, and the parts that it stands on.
 *
 * Nothing is kept that could be stale: every answer looks at the parts as they are now.
 */
import type { Clock } from '#kernel/clock.js';

export type ServingStatus = 'SERVING' | 'NOT_SERVING';

export interface Part {
  /** As callers name it; never the name of a gRPC service. */
  readonly name: string;
  /** Whether the whole is of no use to its callers without this part. */
  readonly isEssential: boolean;
  /** Cheap, and never throws: it is asked at every check, and every `lookMs` while somebody watches. */
  isServing(): boolean;
}

/** A part as it is at one moment. */
export interface PartState {
  readonly isEssential: boolean;
  readonly isServing: boolean;
}

/** The whole serves when it is not draining and every essential part serves. */
export function wholeOf(parts: readonly PartState[], isDraining: boolean): ServingStatus {
  const isServing = !isDraining && parts.every((part) => part.isServing || !part.isEssential);
  return isServing ? 'SERVING' : 'NOT_SERVING';
}

/** A service that drains serves in none of its parts. */
export function partOf(part: PartState, isDraining: boolean): ServingStatus {
  return part.isServing && !isDraining ? 'SERVING' : 'NOT_SERVING';
}

/**
 * How often the parts are looked at for whoever watches, milliseconds.
 *
 * A change is told within it, and one that is undone within it is not told. 250 ms: sooner than anybody
 * acts on it, and no work at all while nobody watches.
 */
export const lookMs = 250;

export class Health {
  readonly #parts: ReadonlyMap<string, Part>;
  readonly #clock: Clock;
  readonly #watchers = new Set<() => void>();
  readonly #drain = new AbortController();
  #look: Disposable | undefined;

  constructor(clock: Clock, parts: readonly Part[]) {
    this.#clock = clock;
    this.#parts = new Map(parts.map((part) => [part.name, part]));
  }

  /** Aborted by the drain, before anybody who watches is told. */
  get draining(): AbortSignal {
    return this.#drain.signal;
  }

  get isDraining(): boolean {
    return this.#drain.signal.aborted;
  }

  whole(): ServingStatus {
    return wholeOf([...this.#parts.values()].map(stateOf), this.isDraining);
  }

  /** Undefined when there is no part of that name. */
  part(name: string): ServingStatus | undefined {
    const part = this.#parts.get(name);
    return part === undefined ? undefined : partOf(stateOf(part), this.isDraining);
  }

  get partNames(): readonly string[] {
    return [...this.#parts.keys()];
  }

  /** Nothing serves from now on, and whoever watches is told in this turn: to be said before anything is cut. */
  drain(): void {
    this.#drain.abort();
    this.#tell();
  }

  /** Calls whenever it is worth looking again, until disposed. */
  watch(call: () => void): Disposable {
    this.#watchers.add(call);
    this.#lookAgain();
    return { [Symbol.dispose]: () => this.#leave(call) };
  }

  #leave(call: () => void): void {
    this.#watchers.delete(call);
    if (this.#watchers.size === 0) {
      this.#look?.[Symbol.dispose]();
      this.#look = undefined;
    }
  }

  #lookAgain(): void {
    this.#look ??= this.#clock.after(lookMs, () => {
      this.#look = undefined;
      if (this.#watchers.size > 0) {
        this.#lookAgain();
        this.#tell();
      }
    });
  }

  #tell(): void {
    for (const call of [...this.#watchers]) {
      call();
    }
  }
}

function stateOf(part: Part): PartState {
  return { isEssential: part.isEssential, isServing: part.isServing() };
}
