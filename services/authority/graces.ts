/** How long a running terminal waits for its agent: one timer for each awaited seat. */
import type { Clock } from '#kernel/clock.js';
import type { PeerRef, WorkerRef } from '#kernel/refs.js';
import type { Deciding } from './domain/deciding.js';

export class Graces {
  readonly #authority: Deciding;
  readonly #clock: Clock;
  readonly #graceMs: number;
  readonly #timers = new Map<WorkerRef, Disposable>();

  constructor(authority: Deciding, clock: Clock, graceMs: number) {
    this.#authority = authority;
    this.#clock = clock;
    this.#graceMs = graceMs;
  }

  /** Every seat of the world that was read: none of its peers outlived the process. */
  beginAll(): void {
    for (const { workerRef, standing, occupancy } of this.#authority.state.world.workers.values()) {
      if (standing === 'open' && occupancy !== undefined) {
        this.begin(workerRef, occupancy.peerRef);
      }
    }
  }

  /** Awaits one occupant. When its time is up the decider looks whether it is back. */
  begin(workerRef: WorkerRef, peerRef: PeerRef): void {
    this.#timers.get(workerRef)?.[Symbol.dispose]();
    const timer = this.#clock.after(this.#graceMs, () => {
      this.#timers.delete(workerRef);
      this.#authority.insist({ kind: 'vacate', workerRef, peerRef });
    });
    this.#timers.set(workerRef, timer);
  }

  [Symbol.dispose](): void {
    for (const timer of this.#timers.values()) {
      timer[Symbol.dispose]();
    }
    this.#timers.clear();
  }
}
