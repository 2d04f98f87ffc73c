/** Requests to authority that wait for a reply of their own: reservations, activations, releases. */

/** Bounded by who asks: each possession has one under way. */
export class PendingRequests<Reply> {
  readonly #waiting = new Map<bigint, (reply: Reply | undefined) => void>();
  #last = 0n;

  /** Numbers a request, sends it, and resolves with its reply; undefined when none will come. */
  send(send: (request: bigint) => void): Promise<Reply | undefined> {
    this.#last += 1n;
    const request = this.#last;
    return new Promise((resolve) => {
      this.#waiting.set(request, resolve);
      send(request);
    });
  }

  reply(request: bigint, reply: Reply): void {
    this.#waiting.get(request)?.(reply);
    this.#waiting.delete(request);
  }

  lose(): void {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const settle of waiting) {
      settle(undefined);
    }
  }
}
