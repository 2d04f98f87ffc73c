/**
 * Somebody's facts, each once and in order, for as long as anybody wants them.
 *
 * One stream of the owner's carries them. When it ends, it is opened again after what was had: after a
 * backoff, or at once when a hint says that there is more. Hints move nothing else, so whatever a broker
 * loses, repeats, reorders or invents changes latency and nothing that is true.
 */
import { Bug, bug } from '#kernel/bug.js';
import type { Clock } from '#kernel/clock.js';
import { Fault } from './fault.js';
import {
  type FollowEffect,
  type FollowInput,
  type Following,
  type FollowLimits,
  follow,
  startFollowing,
} from './following.js';

export interface Numbered {
  /** From 1, without gaps. */
  readonly index: bigint;
}

/**
 * Opens the owner's stream of facts after an index: those there are, then those to come.
 *
 * It calls `opened` when the owner has taken the call, ends when the owner or the transport does, by
 * returning or throwing, and at once when `signal` aborts. It reads no faster than it is iterated.
 */
export type OpenTail<Fact extends Numbered> = (
  after: bigint,
  call: { readonly opened: () => void; readonly signal: AbortSignal },
) => AsyncIterable<Fact>;

export interface FollowerOptions<Fact extends Numbered> {
  readonly open: OpenTail<Fact>;
  /** A bus's `onHint` for the owner. */
  readonly onHint: (call: (index: bigint) => void) => Disposable;
  readonly clock: Clock;
  /** The newest index already had; 0 for none. */
  readonly after: bigint;
  /** Why the stream ended, for a log; undefined when the owner ended it without a word. */
  readonly onCutOff: (cause: unknown) => void;
  readonly limits?: FollowLimits;
}

/**
 * The first is also the least time between two diallings, whatever anybody hints. The longest is how
 * late an owner's return is noticed where no hint comes (`bus=direct`).
 */
export const followLimits: FollowLimits = { firstMs: 100, maxMs: 5_000 };

/** How much of the owner's world a follower can vouch for. Times are of the monotonic clock, ms. */
export interface Freshness {
  /**
   * Whether the owner's stream is open. A connection that is gone without a word is noticed by its
   * keepalive, 15 s later at most; until then this still says true.
   */
  readonly isFollowing: boolean;
  /** The last sign of the owner: it took the call, or sent a fact. Undefined: never yet. */
  readonly heardAtMs: number | undefined;
  /** Since when it has been cut off. Undefined: it is not, or never was connected. */
  readonly cutOffAtMs: number | undefined;
  readonly lastIndex: bigint;
}

/** Iterated once. What was yielded counts as taken; whoever stops iterating stops following. */
export class FactFollower<Fact extends Numbered> implements AsyncIterable<Fact>, Disposable {
  readonly #options: FollowerOptions<Fact>;
  readonly #limits: FollowLimits;
  #state: Following;
  #hasBegun = false;
  #isOver = false;
  #heardAtMs: number | undefined;
  #link = new AbortController();
  #wait: Disposable | undefined;
  #dial: (() => void) | undefined;

  constructor(options: FollowerOptions<Fact>) {
    this.#options = options;
    this.#limits = options.limits ?? followLimits;
    this.#state = startFollowing(options.after);
  }

  get freshness(): Freshness {
    const { lastIndex, cutOffAtMs, link } = this.#state;
    const isFollowing = link.kind === 'following';
    return { isFollowing, heardAtMs: this.#heardAtMs, cutOffAtMs, lastIndex };
  }

  /** Ends the iteration, also one that waits. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#wait?.[Symbol.dispose]();
    this.#link.abort();
    this.#dial?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Fact> {
    if (this.#hasBegun) {
      bug('a follower is iterated once');
    }
    this.#hasBegun = true;
    using _ears = this.#options.onHint((index) => {
      this.#step({ kind: 'hint', index, atMs: this.#now() });
    });
    try {
      this.#step({ kind: 'begin', atMs: this.#now() });
      while (!this.#isOver) {
        yield* this.#stream();
        await this.#dialAgain();
      }
    } finally {
      this[Symbol.dispose]();
    }
  }

  /** One stream, from its opening to its end. Its failure is what `onCutOff` is told, and no more. */
  async *#stream(): AsyncGenerator<Fact> {
    const link = new AbortController();
    this.#link = link;
    const opened = (): void => this.#heard(link, { kind: 'opened' });
    let cause: unknown;
    try {
      const facts = this.#options.open(this.#state.lastIndex, { opened, signal: link.signal });
      for await (const fact of facts) {
        this.#heardAtMs = this.#now();
        const effects = this.#step({ kind: 'fact', index: fact.index });
        if (effects.some(({ kind }) => kind === 'drop-link')) {
          cause = new Fault(`the stream skipped to ${fact.index}`);
          break;
        }
        if (effects.some(({ kind }) => kind === 'deliver')) {
          yield fact;
        }
      }
    } catch (error) {
      if (error instanceof Bug) {
        throw error;
      }
      cause = error;
    } finally {
      link.abort();
    }
    if (!this.#isOver) {
      this.#options.onCutOff(cause);
    }
  }

  /** Returns when it is time for the next stream, or for none. */
  async #dialAgain(): Promise<void> {
    if (this.#isOver) {
      return;
    }
    const dialled = new Promise<void>((resolve) => {
      this.#dial = resolve;
    });
    this.#step({ kind: 'ended', atMs: this.#now() });
    await dialled;
  }

  #heard(link: AbortController, input: FollowInput): void {
    if (link === this.#link && !link.signal.aborted) {
      this.#heardAtMs = this.#now();
      this.#step(input);
    }
  }

  #step(input: FollowInput): readonly FollowEffect[] {
    const { state, effects } = follow(this.#state, input, this.#limits);
    this.#state = state;
    for (const effect of effects) {
      if (effect.kind === 'wait') {
        this.#waitFor(effect.delayMs);
      } else if (effect.kind === 'dial') {
        this.#wait?.[Symbol.dispose]();
        this.#dial?.();
      }
    }
    return effects;
  }

  #waitFor(delayMs: number): void {
    this.#wait?.[Symbol.dispose]();
    if (!this.#isOver) {
      this.#wait = this.#options.clock.after(delayMs, () => {
        this.#step({ kind: 'due', atMs: this.#now() });
      });
    }
  }

  #now(): number {
    return this.#options.clock.monotonic();
  }
}
