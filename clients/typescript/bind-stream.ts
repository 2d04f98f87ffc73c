/**
 * One Bind: the stream that is a peer's life, held open for as long as the caller is there.
 *
 * It renews its certificate at half life with a key made here; the key never leaves. Whoever dials
 * afterwards should use `identity`, which is always the newest.
 */
import { X509Certificate } from 'node:crypto';
import type { ClientDuplexStream, ServiceError } from '@grpc/grpc-js';
import type { LoadedIdentity } from '#chassis/identity-files.js';
import { fromRefused } from '#chassis/refusal-status.js';
import { systemClock } from '#chassis/system-clock.js';
import type {
  BindRequest,
  BindResponse,
  IssuedCertificate,
} from '#gen/wheelhouse/authority/v1/authority.js';
import type { Refused } from '#gen/wheelhouse/refusal/v1/refusal.js';
import type { Clock } from '#kernel/clock.js';
import { type CallError, callError, RefusedError, UnreachableError } from './call-errors.js';
import { newRequest } from './certificate-request.js';
import type { AuthorityConnection } from './connect.js';

export interface BindOptions {
  /**
   * Told each renewed identity, so that it can be kept. What it throws stays with it: the renewal holds
   * all the same, and the next one is handed over as well.
   */
  readonly onRenewed?: ((identity: LoadedIdentity) => void) | undefined;
  readonly clock?: Clock;
}

/** A bind that has not been answered after this long will not be. */
const BINDING_MS = 10_000;
/** setTimeout takes no more than 2^31 - 1 ms; a longer wait is made of several. */
const TIMER_MAX_MS = 2 ** 31 - 1;
/** A refused or lost renewal is asked for again after this long; half a life leaves room for many. */
const RENEWAL_RETRY_MS = 15_000;

/** Renewals are never closer together than this, whatever a certificate says. */
const RENEWAL_LEAST_MS = 1_000;

interface PendingRenewal {
  readonly keyPem: string;
  resolve(identity: LoadedIdentity): void;
  reject(cause: Error): void;
}

export class BindStream implements Disposable {
  /** Resolves when the bind ends without `close`: the peer's life is over, or about to be. */
  readonly lost: Promise<CallError>;
  readonly #call: ClientDuplexStream<BindRequest, BindResponse>;
  readonly #service: string;
  readonly #options: BindOptions;
  readonly #clock: Clock;
  #identity: LoadedIdentity;
  #isOver = false;
  #pending: PendingRenewal | undefined;
  #timer: Disposable | undefined;
  #onBound: () => void = () => undefined;
  #onLost: (error: CallError) => void = () => undefined;

  private constructor(
    { client, service }: AuthorityConnection,
    identity: LoadedIdentity,
    options: BindOptions,
  ) {
    this.#service = service;
    this.#identity = identity;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.lost = new Promise((resolve) => {
      this.#onLost = resolve;
    });
    this.#call = client.bind();
    this.#call.on('error', (error: ServiceError) => this.#lose(callError(error, service)));
    this.#call.on('end', () => this.#lose(new UnreachableError(service, 'the bind ended')));
    this.#call.on('data', (message: BindResponse) => this.#receive(message));
  }

  /** Returns when the peer lives. Throws a `RefusedError` or an `UnreachableError`. */
  static async open(
    connection: AuthorityConnection,
    identity: LoadedIdentity,
    options: BindOptions = {},
  ): Promise<BindStream> {
    const bind = new BindStream(connection, identity, options);
    const bound = new Promise<undefined>((resolve) => {
      bind.#onBound = () => resolve(undefined);
    });
    using _overdue = bind.#clock.after(BINDING_MS, () => {
      bind.#lose(new UnreachableError(connection.service, 'the bind was not answered in time'));
    });
    const failure = await Promise.race([bound, bind.lost]);
    if (failure !== undefined) {
      throw failure;
    }
    bind.#renewAtHalfLife();
    return bind;
  }

  /** The newest identity of this peer. */
  get identity(): LoadedIdentity {
    return this.#identity;
  }

  /** Asks for a certificate that continues this one. Throws a `RefusedError` or an `UnreachableError`. */
  async renew(): Promise<LoadedIdentity> {
    const { request, keyPem } = await newRequest();
    if (this.#isOver || this.#pending !== undefined) {
      throw new UnreachableError(this.#service, 'the bind is over, or renewing already');
    }
    return await new Promise((resolve, reject) => {
      this.#pending = { keyPem, resolve, reject };
      const certificateRequest = Buffer.from(request);
      this.#call.write({ operation: { $case: 'renew', value: { certificateRequest } } });
    });
  }

  /** Leaves: the peer's life ends with its last bind. */
  close(): void {
    this.#finish(new UnreachableError(this.#service, 'the bind was closed'));
    this.#call.end();
    this.#call.cancel();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #receive({ event }: BindResponse): void {
    switch (event?.$case) {
      case 'bound':
        this.#onBound();
        break;
      case 'renewed':
        this.#renewed(event.value);
        break;
      case 'refused':
        this.#renewalRefused(event.value);
        break;
      case undefined:
        break;
    }
  }

  #renewed({ certificatePem }: IssuedCertificate): void {
    const pending = this.#pending;
    this.#pending = undefined;
    if (pending === undefined) {
      return;
    }
    const { rootPem } = this.#identity;
    this.#identity = { identity: { certificatePem, keyPem: pending.keyPem }, rootPem };
    pending.resolve(this.#identity);
    this.#renewAtHalfLife();
    try {
      this.#options.onRenewed?.(this.#identity);
    } catch {
      // Out of here it would end the process from inside the transport, and the run with it.
    }
  }

  #renewalRefused(message: Refused): void {
    const refusal = fromRefused(message);
    const cause =
      refusal === undefined
        ? new UnreachableError(this.#service, 'the renewal was refused by an unknown name')
        : new RefusedError(refusal);
    this.#pending?.reject(cause);
    this.#pending = undefined;
  }

  #renewAtHalfLife(): void {
    this.#timer?.[Symbol.dispose]();
    const nowMs = this.#clock.now();
    // Certificates are backdated, so a short one may be past its half when it is new: a quarter of
    // what is left then keeps renewals from chasing one another.
    const leftMs = notAfterOf(this.#identity) - nowMs;
    const dueMs = Math.max(halfLifeOf(this.#identity) - nowMs, leftMs / 4, RENEWAL_LEAST_MS);
    this.#renewIn(dueMs);
  }

  #renewIn(delayMs: number): void {
    if (this.#isOver) {
      return;
    }
    if (delayMs > TIMER_MAX_MS) {
      this.#timer = this.#clock.after(TIMER_MAX_MS, () => this.#renewIn(delayMs - TIMER_MAX_MS));
      return;
    }
    this.#timer = this.#clock.after(delayMs, () => {
      this.renew().catch(() => this.#renewIn(RENEWAL_RETRY_MS));
    });
  }

  #lose(error: CallError): void {
    if (!this.#isOver) {
      this.#finish(error);
      this.#onLost(error);
      this.#call.cancel();
    }
  }

  #finish(cause: Error): void {
    this.#isOver = true;
    this.#timer?.[Symbol.dispose]();
    this.#pending?.reject(cause);
    this.#pending = undefined;
  }
}

/** When a certificate has lived half of its life, milliseconds since 1970. */
export function halfLifeOf({ identity }: LoadedIdentity): number {
  const { fromMs, toMs } = lifeOf(identity.certificatePem);
  return fromMs + (toMs - fromMs) / 2;
}

function notAfterOf({ identity }: LoadedIdentity): number {
  return lifeOf(identity.certificatePem).toMs;
}

/** Whether a certificate is within the last third of its life, or past it. */
export function isNearItsEnd(certificatePem: string, nowMs: number): boolean {
  const { fromMs, toMs } = lifeOf(certificatePem);
  return nowMs >= toMs - (toMs - fromMs) / 3;
}

function lifeOf(certificatePem: string): { fromMs: number; toMs: number } {
  const { validFrom, validTo } = new X509Certificate(certificatePem);
  return { fromMs: Date.parse(validFrom), toMs: Date.parse(validTo) };
}
