/** Every terminal of this node, and what authority says about them. */
import type { Logger } from '#chassis/logger.js';
import type { WorkerRef } from '#kernel/refs.js';
import type { CloseReasonName } from '#kernel/refusal.js';
import type { Carrier } from './carrier.js';
import type { Carried, FenceOrder, LinkEvents, Reattachment, Verdict } from './domain/link.js';

export class Carriers implements LinkEvents {
  readonly #logger: Logger;
  /** By worker, while authority answers for the terminal. */
  readonly #attached = new Map<WorkerRef, Carrier>();
  /** Those with a process or a descriptor. */
  readonly #running = new Set<Carrier>();
  /** Also those whose last look still has something at the transport: a fence must find it (law P7). */
  readonly #all = new Set<Carrier>();
  readonly #onStatus = new Set<() => void>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Terminals that still have a process or a descriptor. */
  get count(): number {
    return this.#running.size;
  }

  add(carrier: Carrier): void {
    this.#attached.set(carrier.basis.workerRef, carrier);
    this.#running.add(carrier);
    this.#all.add(carrier);
    this.statusChanged();
  }

  detach(carrier: Carrier): void {
    const { workerRef } = carrier.basis;
    if (this.#attached.get(workerRef) === carrier) {
      this.#attached.delete(workerRef);
    }
    this.statusChanged();
  }

  /** The terminal is hung up, and nothing of its session is left, or not even SIGKILL ends it. */
  hungUp(carrier: Carrier, fault?: unknown): void {
    this.#running.delete(carrier);
    if (fault !== undefined) {
      this.#logger.warn({ err: fault }, 'a terminal left something behind');
    }
  }

  /** Nothing of it is left, here or at a transport. */
  remove(carrier: Carrier): void {
    this.#all.delete(carrier);
  }

  attachedAt(workerRef: WorkerRef): Carrier | undefined {
    return this.#attached.get(workerRef);
  }

  attached(): readonly Carrier[] {
    return [...this.#attached.values()];
  }

  /** Calls whenever presented, held or attached has changed. */
  watchStatus(call: () => void): Disposable {
    this.#onStatus.add(call);
    return { [Symbol.dispose]: () => this.#onStatus.delete(call) };
  }

  statusChanged(): void {
    for (const call of this.#onStatus) {
      call();
    }
  }

  /** Ends everything by name; programs get SIGHUP. */
  end(reason: CloseReasonName): void {
    for (const carrier of [...this.#all]) {
      carrier.end(reason);
    }
  }

  carried(): readonly Carried[] {
    return this.attached().map(({ basis }) => basis);
  }

  onReconciled(verdicts: readonly Verdict[], presentationsEnd: CloseReasonName): void {
    for (const carrier of this.#all) {
      carrier.endPresentation(presentationsEnd);
    }
    const byRef = new Map(verdicts.map((verdict) => [verdict.attachmentRef, verdict]));
    for (const carrier of this.attached()) {
      const verdict = byRef.get(carrier.basis.attachmentRef);
      const reason = verdict === undefined ? 'RELEASED' : verdict.endReason;
      if (reason !== undefined) {
        this.#logger.info({ reason }, 'terminal ended by authority');
        carrier.endPossession(reason);
      }
    }
  }

  onLost(): void {
    for (const carrier of this.#all) {
      carrier.authorityLost();
    }
  }

  async onFence({ workerRef, scope, reason }: FenceOrder): Promise<void> {
    const carriers = [...this.#all].filter(({ basis }) => basis.workerRef === workerRef);
    await Promise.all(carriers.map((carrier) => carrier.fencePresentations(reason)));
    if (scope === 'POSSESSION') {
      for (const carrier of carriers) {
        carrier.endPossession(reason);
      }
    }
  }

  onReattached(reattachment: Reattachment): void {
    const carrier = this.#attached.get(reattachment.workerRef);
    if (carrier?.basis.attachmentRef === reattachment.attachmentRef) {
      carrier.reattached(reattachment);
    }
  }
}
