/**
 * grpc.health.v1 of a service: by the name of a gRPC service or `""` the whole, by any other name a part.
 *
 * https://github.com/grpc/grpc/blob/master/doc/health-checking.md; docs/decisions/0009 says why it is ours.
 */
import type {
  handleServerStreamingCall,
  handleUnaryCall,
  ServerWritableStream,
} from '@grpc/grpc-js';
import { status } from '@grpc/grpc-js';
import {
  type HealthCheckRequest,
  type HealthCheckResponse,
  type HealthListRequest,
  type HealthListResponse,
  type HealthServer,
  HealthService,
  HealthCheckResponse_ServingStatus as WireStatus,
} from '#gen/grpc/health/v1/health.js';
import type { Exposed } from './grpc-server.js';
import type { Health, ServingStatus } from './health.js';
import { ServerFeed } from './server-feed.js';

/** `services` are the gRPC services whose health is that of the whole. */
export function healthService(health: Health, services: readonly string[]): Exposed {
  const names = new Names(health, services);
  const implementation: HealthServer = {
    check: check(names),
    watch: watch(health, names),
    list: list(names),
  };
  return { definition: HealthService, implementation };
}

/** What every name that may be asked for stands for. */
class Names {
  readonly #health: Health;
  readonly #ofTheWhole: readonly string[];

  constructor(health: Health, services: readonly string[]) {
    this.#health = health;
    this.#ofTheWhole = ['', ...services];
  }

  /** Undefined for a name that means nothing here. */
  statusOf(name: string): ServingStatus | undefined {
    return this.#ofTheWhole.includes(name) ? this.#health.whole() : this.#health.part(name);
  }

  all(): readonly string[] {
    return [...this.#ofTheWhole, ...this.#health.partNames];
  }
}

/** An unknown name ends the call with the standard's own NOT_FOUND: it is no refusal of ours. */
function check(names: Names): handleUnaryCall<HealthCheckRequest, HealthCheckResponse> {
  return ({ request }, callback) => {
    const known = names.statusOf(request.service);
    if (known === undefined) {
      const details = `no such service or part; there are ${names.all().slice(1).join(', ')}`;
      callback({ code: status.NOT_FOUND, details });
    } else {
      callback(null, { status: WireStatus[known] });
    }
  };
}

function list(names: Names): handleUnaryCall<HealthListRequest, HealthListResponse> {
  return (_call, callback) => {
    const statuses: HealthListResponse['statuses'] = {};
    for (const name of names.all()) {
      statuses[name] = { status: WireStatus[names.statusOf(name) ?? 'NOT_SERVING'] };
    }
    callback(null, { statuses });
  };
}

function watch(
  health: Health,
  names: Names,
): handleServerStreamingCall<HealthCheckRequest, HealthCheckResponse> {
  return (call) => new Watching(health, names, call).begin();
}

type WatchCall = ServerWritableStream<HealthCheckRequest, HealthCheckResponse>;

/**
 * One watcher: told what changed since it was told last, and never while that is still on its way, so
 * that one that does not read costs one message. It ends with the drain, by name.
 */
class Watching {
  readonly #health: Health;
  readonly #names: Names;
  readonly #name: string;
  readonly #feed: ServerFeed<HealthCheckResponse>;
  #watch: Disposable | undefined;
  #told: WireStatus | undefined;
  #isOnItsWay = false;

  constructor(health: Health, names: Names, call: WatchCall) {
    this.#health = health;
    this.#names = names;
    this.#name = call.request.service;
    this.#feed = new ServerFeed(call, () => this.#watch?.[Symbol.dispose]());
  }

  begin(): void {
    this.#watch = this.#health.watch(() => this.#tell());
    this.#tell();
  }

  #tell(): void {
    if (this.#health.isDraining) {
      return this.#end();
    }
    const now = this.#now();
    if (!this.#isOnItsWay && now !== this.#told) {
      this.#isOnItsWay = true;
      this.#send(now, () => {
        this.#isOnItsWay = false;
        this.#tell();
      });
    }
  }

  /** The last word goes out behind the one that may still be on its way: two at most. */
  #end(): void {
    this.#watch?.[Symbol.dispose]();
    if (this.#now() !== this.#told) {
      this.#send(this.#now());
    }
    this.#feed.refuse({ reason: 'SERVICE_DRAINING', facts: {} });
  }

  #send(now: WireStatus, onTaken?: () => void): void {
    this.#told = now;
    this.#feed.send({ status: now }, onTaken);
  }

  #now(): WireStatus {
    return WireStatus[this.#names.statusOf(this.#name) ?? 'SERVICE_UNKNOWN'];
  }
}
