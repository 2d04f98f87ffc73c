/**
 * The bus between planes: hints, never truth.
 *
 * Everything hinted can be read from its owner by gRPC, so loss, duplication and reordering cost
 * latency only, and publishing never fails and never waits.
 */
import type { HintingPlane } from './bus-subjects.js';
import type { BusService } from './bus-users.js';
import { Fault } from './fault.js';
import type { Logger } from './logger.js';
import { NatsBus } from './nats-bus.js';

export interface Bus extends AsyncDisposable {
  /** Whether hints travel now; always so without a broker, as nothing is waited for. */
  readonly isConnected: boolean;
  /** Says that a plane has facts up to an index. At most once; never throws for a broker that is away. */
  hint(plane: HintingPlane, hint: PlaneHint): void;
  /** Calls for every hint that arrives, in whatever order and however often it does. */
  onHint(plane: HintingPlane, call: (index: bigint) => void): Disposable;
}

export interface PlaneHint {
  /** The newest index there is to read. */
  readonly index: bigint;
  /** Which life of the plane counts so. Only there to tell a repetition from news (Nats-Msg-Id). */
  readonly life: string;
}

export interface BusOptions {
  /** `direct`: no broker, Tail alone. `nats://host:port`: who was cut off hears of news at once. */
  readonly address: string;
  readonly service: BusService;
  /** Where the service's own seed is by default, below this folder. */
  readonly stateDir: string;
  /** The seed's file, which must then be there; empty for the default, if that is there. */
  readonly seedPath: string;
  readonly logger: Logger;
}

/**
 * Returns at once: no service waits for its broker.
 *
 * Throws a `Fault` for an address that is none. A broker that is away, or refuses this user, is said
 * in the log by name, once until it changes; hints are lost meanwhile, and nothing else is.
 */
export function openBus(options: BusOptions): Bus {
  const { address } = options;
  if (address === 'direct') {
    return directBus;
  }
  if (!/^nats:\/\/[^/@\s]+$/.test(address)) {
    throw new Fault(`a bus is direct or nats://host:port, not ${address}`);
  }
  return new NatsBus(options);
}

const directBus: Bus = {
  isConnected: true,
  hint: () => undefined,
  onHint: () => ({ [Symbol.dispose]: () => undefined }),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};
