/**
 * The certificates that living calls were made with, each under the number authority knows it by.
 *
 * One number for each certificate, however many calls are made with it: authority checks it once, and
 * a caller that asks for thousands of things at once takes no more of its numbers than any other.
 */
import { granted, type Outcome, refused } from '#kernel/outcome.js';
import type { Caller } from '../domain/link.js';

interface Introduced {
  readonly caller: Caller;
  readonly certificate: Uint8Array;
  /** The certificate as a key of a map. */
  readonly key: string;
  /** Calls that ask in its name. At least 1. */
  callCount: number;
}

/** Bounded, because authority ends the stream of a node that introduces more than it takes. */
export class IntroducedCallers {
  readonly #callersMax: number;
  readonly #byNumber = new Map<Caller, Introduced>();
  readonly #byCertificate = new Map<string, Introduced>();
  #last = 0;

  constructor(callersMax: number) {
    this.#callersMax = callersMax;
  }

  /** The number of a call's certificate. `introduce` is called when it is a new one. Refuses PEERS_EXHAUSTED. */
  enter(certificate: Uint8Array, introduce: (caller: Caller) => void): Outcome<Caller> {
    const key = Buffer.from(certificate).toString('latin1');
    const known = this.#byCertificate.get(key);
    if (known !== undefined) {
      known.callCount += 1;
      return granted(known.caller);
    }
    if (this.#byNumber.size >= this.#callersMax) {
      return refused('PEERS_EXHAUSTED', { callersMax: String(this.#callersMax) });
    }
    this.#last += 1;
    const introduced = { caller: this.#last, certificate, key, callCount: 1 };
    this.#byNumber.set(introduced.caller, introduced);
    this.#byCertificate.set(key, introduced);
    introduce(introduced.caller);
    return granted(introduced.caller);
  }

  /** One call is over; to be said once for each. `farewell` is called when it was the last of its number. */
  leave(caller: Caller, farewell: () => void): void {
    const introduced = this.#byNumber.get(caller);
    if (introduced === undefined) {
      return;
    }
    introduced.callCount -= 1;
    if (introduced.callCount === 0) {
      this.#byNumber.delete(caller);
      this.#byCertificate.delete(introduced.key);
      farewell();
    }
  }

  /** Everyone, for a stream that knows nobody yet. */
  all(): readonly Pick<Introduced, 'caller' | 'certificate'>[] {
    return [...this.#byNumber.values()];
  }
}
