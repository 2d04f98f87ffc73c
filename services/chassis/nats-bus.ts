/**
 * The bus with a broker: dialled, lost and dialled again for ever, never in anybody's way.
 *
 * The client's own reconnecting is off: while it is away it queues whatever is published, without a
 * bound. Here a connection is over when it is lost, and what waits is one hint a plane, the newest.
 */
import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type ConnectionOptions,
  connect,
  ErrorCode,
  headers,
  type NatsConnection,
  NatsError,
  nkeyAuthenticator,
  type Subscription,
} from 'nats';
import { Hint } from '#gen/wheelhouse/bus/v1/bus.js';
import { type Backoff, backoffMs } from './backoff.js';
import type { Bus, BusOptions, PlaneHint } from './bus.js';
import { busSeedPath, readBusSeed } from './bus-keys.js';
import { type HintingPlane, hintSubject } from './bus-subjects.js';
import { Fault } from './fault.js';
import { HintOutbox } from './hint-outbox.js';

/**
 * Between attempts at the broker, ms. The first is soon: a restarted broker is there within a second.
 * The longest is what a broker's return may go unnoticed for, which costs latency only.
 */
const REDIAL: Backoff = { firstMs: 250, maxMs: 10_000 };

const dialling: ConnectionOptions = {
  reconnect: false,
  // A broker that takes connections and says nothing is stopped: 5 s is a thousand times what one needs.
  timeout: 5_000,
  // A connection that answers nothing is over within 15 s, as a gRPC one is by its keepalive.
  pingInterval: 5_000,
  maxPingOut: 2,
  ignoreClusterUpdates: true,
};

/** Why there are no hints, as the log names it. */
type Trouble =
  | 'bus-unreachable'
  | 'bus-user-refused'
  | 'bus-seed-unusable'
  | 'bus-lost'
  | 'bus-permission-refused';

export class NatsBus implements Bus {
  readonly #options: BusOptions;
  readonly #closing = new AbortController();
  readonly #outbox = new HintOutbox((hints) => this.#publish(hints));
  readonly #ears = new Map<HintingPlane, Set<(index: bigint) => void>>();
  readonly #subscriptions = new Map<HintingPlane, Subscription>();
  #connection: NatsConnection | undefined;
  #said: Trouble | undefined;

  constructor(options: BusOptions) {
    this.#options = options;
    void this.#keepDialling();
  }

  /** A broker that is stopped where it stands is noticed within 15 s. */
  get isConnected(): boolean {
    return this.#connection !== undefined;
  }

  hint(plane: HintingPlane, hint: PlaneHint): void {
    this.#outbox.put(plane, hint);
  }

  onHint(plane: HintingPlane, call: (index: bigint) => void): Disposable {
    const ears = this.#ears.get(plane) ?? new Set();
    this.#ears.set(plane, ears.add(call));
    this.#subscribe(plane);
    return { [Symbol.dispose]: () => ears.delete(call) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.#outbox.stop();
    await this.#connection?.close();
  }

  /** The supervisor of the connection. Never rejects. */
  async #keepDialling(): Promise<void> {
    const { signal } = this.#closing;
    for (let failed = 1; !signal.aborted; failed += 1) {
      const dialledAtMs = performance.now();
      this.#say(await this.#live());
      // Only what has held for a while has earned a fresh start: a broker that takes and drops has not.
      if (performance.now() - dialledAtMs > REDIAL.maxMs) {
        failed = 1;
      }
      const pauseMs = backoffMs(REDIAL, failed);
      await delay(pauseMs, undefined, { ref: false, signal }).catch(() => undefined);
    }
  }

  /** One connection, from dialling to its end; says why there is none any more. */
  async #live(): Promise<Trouble> {
    try {
      const connection = await connect({ ...dialling, ...this.#user() });
      if (this.#closing.signal.aborted) {
        await connection.close();
        return 'bus-lost';
      }
      this.#begin(connection);
      await connection.closed();
    } catch (error) {
      return troubleOf(error);
    } finally {
      this.#connection = undefined;
      this.#subscriptions.clear();
      this.#outbox.stop();
    }
    return 'bus-lost';
  }

  #begin(connection: NatsConnection): void {
    this.#connection = connection;
    this.#said = undefined;
    this.#options.logger.info('bus found');
    void this.#listenForRefusals(connection);
    for (const plane of this.#ears.keys()) {
      this.#subscribe(plane);
    }
    this.#outbox.start();
  }

  /** The seed is read at each dialling: a key that has been replaced is used without a restart. */
  #user(): ConnectionOptions {
    const { address, service, stateDir, seedPath } = this.#options;
    const path = seedPath === '' ? busSeedPath(stateDir, service) : seedPath;
    const isAnonymous = seedPath === '' && !existsSync(path);
    return {
      servers: address,
      name: service,
      ...(isAnonymous ? {} : { authenticator: nkeyAuthenticator(seedAt(path)) }),
    };
  }

  #subscribe(plane: HintingPlane): void {
    if (this.#connection === undefined || this.#subscriptions.has(plane)) {
      return;
    }
    const subscription = this.#connection.subscribe(hintSubject(plane), {
      callback: (error, message) => {
        const index = error === null ? indexOf(message.data) : undefined;
        if (index !== undefined) {
          for (const call of this.#ears.get(plane) ?? []) {
            call(index);
          }
        }
      },
    });
    this.#subscriptions.set(plane, subscription);
  }

  /** Resolves when the broker has taken them; rejects when this connection will not tell. */
  async #publish(hints: ReadonlyMap<HintingPlane, PlaneHint>): Promise<void> {
    const connection = this.#connection;
    if (connection === undefined) {
      throw new Fault('there is no connection to the broker');
    }
    for (const [plane, { index, life }] of hints) {
      const carried = headers();
      carried.set('Nats-Msg-Id', `${plane}:${life}:${index}`);
      connection.publish(hintSubject(plane), Hint.encode({ index }).finish(), { headers: carried });
    }
    await connection.flush();
  }

  /** A permission that is missing costs its hints for the life of this connection, and one line. */
  async #listenForRefusals(connection: NatsConnection): Promise<void> {
    for await (const { data, permissionContext } of connection.status()) {
      if (data === ErrorCode.PermissionsViolation) {
        if (permissionContext?.operation === 'publish') {
          this.#outbox.stop();
        }
        this.#say('bus-permission-refused', permissionContext);
      }
    }
  }

  /** Once, until it changes: a broker may be away for a week. */
  #say(trouble: Trouble, context: object = {}): void {
    if (trouble !== this.#said && !this.#closing.signal.aborted) {
      this.#said = trouble;
      this.#options.logger.warn(
        { reason: trouble, ...context },
        'no hints by the bus: facts go by Tail alone',
      );
    }
  }
}

class SeedUnusable extends Fault {
  override readonly name = 'SeedUnusable';
}

function seedAt(path: string): Uint8Array {
  try {
    return readBusSeed(path);
  } catch (error) {
    throw new SeedUnusable(`${path} cannot be signed with`, { cause: error });
  }
}

function troubleOf(error: unknown): Trouble {
  if (error instanceof SeedUnusable) {
    return 'bus-seed-unusable';
  }
  const isRefusal = error instanceof NatsError && refusals.has(error.code);
  return isRefusal ? 'bus-user-refused' : 'bus-unreachable';
}

const refusals = new Set<string>([
  ErrorCode.AuthorizationViolation,
  ErrorCode.AuthenticationExpired,
  ErrorCode.AuthenticationTimeout,
  ErrorCode.BadAuthentication,
]);

/** What is no hint is as good as one that was lost. */
function indexOf(data: Uint8Array): bigint | undefined {
  try {
    return Hint.decode(data).index;
  } catch {
    return undefined;
  }
}
