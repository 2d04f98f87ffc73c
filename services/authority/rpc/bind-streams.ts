/** The Bind streams that are open, by lineage, and the moment at which the next certificate ends. */
import type { ServerStream } from '#chassis/server-stream.js';
import type { BindRequest, BindResponse } from '#gen/wheelhouse/authority/v1/authority.js';
import type { Clock } from '#kernel/clock.js';
import type { Lineage } from '#kernel/refs.js';
import type { Refusal } from '#kernel/refusal.js';
import type { Deciding } from '../domain/deciding.js';
import { endExpired, type Presence } from '../domain/presence.js';

export type BindStream = ServerStream<BindRequest, BindResponse>;

/** Longest wait of one timer, milliseconds: Node's own limit is 2^31. */
const timerMsMax = 86_400_000;

export class BindStreams {
  readonly #authority: Deciding;
  readonly #clock: Clock;
  readonly #streams = new Map<Lineage, Set<BindStream>>();
  readonly #following: Disposable;
  #seen: Presence['peers'] | undefined;
  #timer: Disposable | undefined;

  constructor(authority: Deciding, clock: Clock) {
    this.#authority = authority;
    this.#clock = clock;
    this.#following = authority.follow(() => this.#awaitNextEnd());
  }

  enter(lineage: Lineage, stream: BindStream): void {
    const streams = this.#streams.get(lineage) ?? new Set();
    this.#streams.set(lineage, streams.add(stream));
  }

  leave(lineage: Lineage, stream: BindStream): void {
    const streams = this.#streams.get(lineage);
    streams?.delete(stream);
    if (streams?.size === 0) {
      this.#streams.delete(lineage);
    }
  }

  /** Ends every stream of a lineage by name. */
  refuse(lineage: Lineage, refusal: Refusal): void {
    for (const stream of this.#streams.get(lineage) ?? []) {
      stream.refuse(refusal);
    }
  }

  /** Ends the peers whose newest certificate has ended by now. */
  endExpired(): void {
    const nowMs = this.#clock.now();
    this.#authority.apply(({ presence, world }) => endExpired(presence, world, nowMs));
  }

  [Symbol.dispose](): void {
    this.#following[Symbol.dispose]();
    this.#timer?.[Symbol.dispose]();
  }

  #awaitNextEnd(): void {
    const { peers } = this.#authority.state.presence;
    if (peers === this.#seen) {
      return;
    }
    this.#seen = peers;
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    if (peers.size === 0) {
      return;
    }
    let nextEndMs = Number.POSITIVE_INFINITY;
    for (const { notAfterMs } of peers.values()) {
      nextEndMs = Math.min(nextEndMs, notAfterMs);
    }
    const waitMs = nextEndMs - this.#clock.now();
    this.#timer = this.#clock.after(Math.min(Math.max(waitMs, 0), timerMsMax), () => {
      this.#seen = undefined;
      this.endExpired();
      this.#awaitNextEnd();
    });
  }
}
