/**
 * The bus between planes: hints, never truth.
 *
 * Everything hinted can be read from its owner by gRPC, so loss, duplication and reordering cost
 * latency only, and publishing never fails and never waits.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { connect, type NatsConnection, type Subscription } from 'nats';
import { Hint } from '#gen/wheelhouse/bus/v1/bus.js';
import { type HintingPlane, hintSubject } from './bus-subjects.js';
import { Fault } from './fault.js';
import type { Logger } from './logger.js';

export interface Bus extends AsyncDisposable {
  /** Whether hints travel now; always so without a broker, as nothing is waited for. */
  readonly isConnected: boolean;
  /** Says that a plane has facts up to an index. At most once; never throws for a broker that is away. */
  hint(plane: HintingPlane, index: bigint): void;
  /** Calls for every hint that arrives, in whatever order and however often it does. */
  onHint(plane: HintingPlane, call: (index: bigint) => void): Disposable;
}

/** `direct`: no broker, Tail alone. `nats://…`: the same facts arrive sooner. Does not wait for the broker. */
export function openBus(address: string, logger: Logger): Bus {
  if (address === 'direct') {
    return directBus;
  }
  if (!address.startsWith('nats://')) {
    throw new Fault(`a bus is direct or nats://host:port, not ${address}`);
  }
  return new NatsBus(address, logger);
}

const directBus: Bus = {
  isConnected: true,
  hint: () => undefined,
  onHint: () => ({ [Symbol.dispose]: () => undefined }),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

/** A service starts without its broker, and finds it again whenever it comes back. */
class NatsBus implements Bus {
  readonly #connected: Promise<NatsConnection | undefined>;
  #connection: NatsConnection | undefined;
  #isConnected = false;
  #isClosing = false;

  constructor(servers: string, logger: Logger) {
    this.#connected = this.#connect(servers, logger);
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  hint(plane: HintingPlane, index: bigint): void {
    if (this.#connection?.isClosed() === false) {
      this.#connection.publish(hintSubject(plane), Hint.encode({ index }).finish());
    }
  }

  onHint(plane: HintingPlane, call: (index: bigint) => void): Disposable {
    let subscription: Subscription | undefined;
    let isDisposed = false;
    void this.#connected.then((connection) => {
      if (!isDisposed) {
        subscription = connection?.subscribe(hintSubject(plane), {
          callback: (_error, message) => deliver(message?.data, call),
        });
      }
    });
    return {
      [Symbol.dispose]: () => {
        isDisposed = true;
        subscription?.unsubscribe();
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true;
    await this.#connection?.close();
  }

  async #connect(servers: string, logger: Logger): Promise<NatsConnection | undefined> {
    while (!this.#isClosing) {
      try {
        this.#connection = await connect({ servers, name: 'wheelhouse', ...reconnection });
        this.#isConnected = true;
        void this.#report(this.#connection, logger);
        return this.#connection;
      } catch (error) {
        logger.warn({ err: error }, 'no bus yet: facts go by Tail alone');
        await delay(reconnection.reconnectTimeWait, undefined, { ref: false });
      }
    }
    return undefined;
  }

  async #report(connection: NatsConnection, logger: Logger): Promise<void> {
    for await (const { type } of connection.status()) {
      if (type === 'disconnect' || type === 'reconnect') {
        this.#isConnected = type === 'reconnect';
      }
      logger.info({ type }, 'bus');
    }
  }
}

const reconnection = { maxReconnectAttempts: -1, reconnectTimeWait: 1_000 };

/** What is no hint is as good as one that was lost. */
function deliver(data: Uint8Array | undefined, call: (index: bigint) => void): void {
  try {
    call(Hint.decode(data ?? new Uint8Array()).index);
  } catch {
    return;
  }
}
