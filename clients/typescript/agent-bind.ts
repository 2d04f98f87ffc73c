/**
 * An agent's presence, kept through a restart of authority.
 *
 *   bound ──lost──► binding again ──bound──► bound
 *                        └──refused, or the grace is spent──► over
 *
 * Authority keeps the terminal of a lost agent for its grace and gives it back to the same
 * certificate or its renewal, so the program goes on.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadedIdentity } from '#chassis/identity-files.js';
import { type BindOptions, BindStream } from './bind-stream.js';
import { type CallError, RefusedError, UnreachableError } from './call-errors.js';
import { type AuthorityConnection, connect } from './connect.js';

/** As long as authority keeps a lost agent's terminal (`rebind_grace`). */
const REBIND_GRACE_MS = 30_000;
const REBIND_FIRST_MS = 100;
const REBIND_LONGEST_MS = 1_000;

interface Held {
  readonly authority: AuthorityConnection;
  readonly stream: BindStream;
}

export class AgentBind implements Disposable {
  /** Resolves when the presence is over without `close`: refused, or not to be had within the grace. */
  readonly lost: Promise<CallError>;
  readonly #endpoint: string;
  readonly #options: BindOptions;
  #held: Held;
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

  /** For the calls of this agent. A new one after each restart of authority. */
  get authority(): AuthorityConnection {
    return this.#held.authority;
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
    release(this.#held);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #keep(): Promise<CallError> {
    for (;;) {
      const loss = await this.#held.stream.lost;
      const identity = this.#held.stream.identity;
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

/** A service that is going down will be back; any other refusal stays. */
function isFinal(error: CallError): boolean {
  return error instanceof RefusedError && error.refusal.reason !== 'SERVICE_DRAINING';
}

async function hold(
  endpoint: string,
  identity: LoadedIdentity,
  options: BindOptions,
): Promise<Held> {
  const authority = connect(endpoint, 'authority', identity);
  try {
    return { authority, stream: await BindStream.open(authority, identity, options) };
  } catch (error) {
    authority[Symbol.dispose]();
    throw error;
  }
}

function release({ authority, stream }: Held): void {
  stream.close();
  authority[Symbol.dispose]();
}
