/**
 * An agent's presence, kept through a restart of authority.
 *
 *   bound ──lost──► binding again ──bound──► bound
 *                        └──refused for good, or the grace is spent──► over
 *
 * Authority keeps the terminal of a lost agent for its grace and gives it back to the same
 * certificate or its renewal, so the program goes on.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadedIdentity } from '#chassis/identity-files.js';
import type { ReasonName } from '#kernel/refusal.js';
import { type BindOptions, BindStream } from './bind-stream.js';
import { type CallError, RefusedError, UnreachableError } from './call-errors.js';
import { type AuthorityConnection, connect } from './connect.js';

/** As long as authority keeps a lost agent's terminal (`rebind_grace`). */
const REBIND_GRACE_MS = 30_000;
const REBIND_FIRST_MS = 100;
const REBIND_LONGEST_MS = 1_000;

interface Held {
  /** Who dialled: a renewal does not change a connection that was made before it. */
  readonly as: LoadedIdentity;
  readonly authority: AuthorityConnection;
  readonly stream: BindStream;
}

export class AgentBind implements Disposable {
  /** Resolves when the presence is over without `close`: refused, or not to be had within the grace. */
  readonly lost: Promise<CallError>;
  readonly #endpoint: string;
  readonly #options: BindOptions;
  #held: Held;
  /** For calls, once the bind's own connection is another certificate's than the newest. */
  #renewed: Omit<Held, 'stream'> | undefined;
  #isClosed = false;

  private constructor(endpoint: string, held: Held, options: BindOptions) {
    this.#endpoint = endpoint;
    this.#held = held;
    this.#options = options;
    this.lost = this.#keep();
  }

  /** Returns when the agent is present. Throws a `RefusedError` or an `UnreachableError`. */
  static async open(
    endpoint: string,
    identity: LoadedIdentity,
    options: BindOptions = {},
  ): Promise<AgentBind> {
    return new AgentBind(endpoint, await hold(endpoint, identity, options), options);
  }

  /**
   * For the calls of this agent, as its newest identity: take it anew for each. The one before is closed
   * when there is a newer one, after a renewal and after a restart of authority.
   */
  get authority(): AuthorityConnection {
    const { as, authority, stream } = this.#held;
    if (as === stream.identity) {
      return authority;
    }
    if (this.#renewed?.as !== stream.identity) {
      this.#releaseRenewed();
      const newest = connect(this.#endpoint, 'authority', stream.identity);
      this.#renewed = { as: stream.identity, authority: newest };
    }
    return this.#renewed.authority;
  }

  /** The newest identity: what a new connection should present. */
  get identity(): LoadedIdentity {
    return this.#held.stream.identity;
  }

  /** Renews the certificate now, and hands it to `onRenewed`. */
  async renew(): Promise<LoadedIdentity> {
    return await this.#held.stream.renew();
  }

  close(): void {
    this.#isClosed = true;
    this.#releaseRenewed();
    release(this.#held);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #releaseRenewed(): void {
    this.#renewed?.authority[Symbol.dispose]();
    this.#renewed = undefined;
  }

  async #keep(): Promise<CallError> {
    for (;;) {
      const loss = await this.#held.stream.lost;
      const identity = this.#held.stream.identity;
      this.#releaseRenewed();
      release(this.#held);
      const again = await this.#holdAgain(identity, loss);
      if (again instanceof Error) {
        return again;
      }
      this.#held = again;
    }
  }

  async #holdAgain(identity: LoadedIdentity, loss: CallError): Promise<Held | CallError> {
    const deadline = performance.now() + REBIND_GRACE_MS;
    let delayMs = REBIND_FIRST_MS;
    let last = loss;
    while (!this.#isClosed && performance.now() < deadline && !isFinal(last)) {
      await sleep(delayMs);
      delayMs = Math.min(delayMs * 2, REBIND_LONGEST_MS);
      try {
        const held = await hold(this.#endpoint, identity, this.#options);
        if (this.#isClosed) {
          release(held);
          return loss;
        }
        return held;
      } catch (error) {
        if (!(error instanceof RefusedError || error instanceof UnreachableError)) {
          throw error;
        }
        last = error;
      }
    }
    return last;
  }
}

/**
 * A service that is going down will be back, and what ends meanwhile frees a full disk's room: the seat
 * is kept for the grace. Any other refusal stays.
 */
function isFinal(error: CallError): boolean {
  return error instanceof RefusedError && !passing.has(error.refusal.reason);
}

const passing: ReadonlySet<ReasonName> = new Set(['SERVICE_DRAINING', 'JOURNAL_FULL']);

async function hold(
  endpoint: string,
  identity: LoadedIdentity,
  options: BindOptions,
): Promise<Held> {
  const authority = connect(endpoint, 'authority', identity);
  try {
    return { as: identity, authority, stream: await BindStream.open(authority, identity, options) };
  } catch (error) {
    authority[Symbol.dispose]();
    throw error;
  }
}

function release({ authority, stream }: Held): void {
  stream.close();
  authority[Symbol.dispose]();
}
