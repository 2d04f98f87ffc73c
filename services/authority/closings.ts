/** The closings that run: performs what each one's steps call for, and tells whoever waits. */
import { assertNever } from '#kernel/bug.js';
import type { Clock } from '#kernel/clock.js';
import type { WorkerRef } from '#kernel/refs.js';
import {
  beginClosing,
  type ClosingEffect,
  type ClosingInput,
  type ClosingState,
  type ClosingStep,
  type Fencing,
  stepClosing,
} from './domain/closing.js';
import type { Deciding } from './domain/deciding.js';
import type { NodeLinks } from './rpc/node-links.js';

interface Closing {
  readonly workerRef: WorkerRef;
  readonly node: string;
  state: ClosingState;
  /** The time of the attempt that runs. */
  deadline: Disposable | undefined;
  /** The time of whoever waits: it runs on through the attempts. */
  patience: Disposable | undefined;
  waiting: ((fencing: Fencing) => void)[];
}

export class Closings {
  readonly #authority: Deciding;
  readonly #links: NodeLinks;
  readonly #clock: Clock;
  readonly #ackMs: number;
  /** At most one for each closing worker. */
  readonly #closings = new Map<WorkerRef, Closing>();

  constructor(authority: Deciding, links: NodeLinks, clock: Clock, ackMs: number) {
    this.#authority = authority;
    this.#links = links;
    this.#clock = clock;
    this.#ackMs = ackMs;
  }

  /** Takes up every closing that a restart found half done. */
  beginAll(): void {
    for (const { workerRef, standing } of this.#authority.state.world.workers.values()) {
      if (standing === 'closing') {
        this.begin(workerRef, this.#authority.epoch);
      }
    }
  }

  /** The worker is closing from here on. */
  begin(workerRef: WorkerRef, epoch: bigint): void {
    const worker = this.#authority.state.world.workers.get(workerRef);
    if (worker === undefined || this.#closings.has(workerRef)) {
      return;
    }
    const isAttached = worker.occupancy?.attachment !== undefined;
    const isNodeConnected = this.#links.of(worker.node) !== undefined;
    const step = beginClosing({ isAttached, isNodeConnected });
    const closing: Closing = {
      workerRef,
      node: worker.node,
      state: step.state,
      deadline: undefined,
      patience: undefined,
      waiting: [],
    };
    this.#closings.set(workerRef, closing);
    this.#take(closing, step, epoch);
  }

  /** The node's stream serves: what waited for it goes on, and what was sent before counts for nothing. */
  resume(node: string, epoch: bigint): void {
    this.#each(node, { kind: 'node-ready' }, epoch);
  }

  nodeGone(node: string): void {
    this.#each(node, { kind: 'node-gone' }, this.#authority.epoch);
  }

  /** Resolves when the running closing is acknowledged, or its time or the caller's is up. */
  outcome(workerRef: WorkerRef): Promise<Fencing> {
    const closing = this.#closings.get(workerRef);
    if (closing === undefined) {
      return Promise.resolve('fenced');
    }
    if (closing.state.kind === 'awaiting-node' && closing.patience === undefined) {
      return Promise.resolve('fenced-by-disconnect');
    }
    this.#awaitPatiently(closing);
    return new Promise((resolve) => closing.waiting.push(resolve));
  }

  [Symbol.dispose](): void {
    for (const closing of this.#closings.values()) {
      disarm(closing);
      closing.patience?.[Symbol.dispose]();
    }
    this.#closings.clear();
  }

  #each(node: string, input: ClosingInput, epoch: bigint): void {
    for (const closing of [...this.#closings.values()]) {
      if (closing.node === node) {
        this.#take(closing, stepClosing(closing.state, input), epoch);
      }
    }
  }

  #later(closing: Closing, input: ClosingInput): void {
    this.#take(closing, stepClosing(closing.state, input), this.#authority.epoch);
  }

  #take(closing: Closing, step: ClosingStep, epoch: bigint): void {
    closing.state = step.state;
    for (const effect of step.effects) {
      this.#perform(closing, effect, epoch);
    }
  }

  #perform(closing: Closing, effect: ClosingEffect, epoch: bigint): void {
    const { workerRef, node } = closing;
    switch (effect.kind) {
      case 'send-fence': {
        const { scope } = effect;
        const order = { workerRef, scope, reason: 'WORKER_CLOSED' } as const;
        const onAck = (): void => this.#later(closing, { kind: 'acked', scope });
        return this.#links.of(node)?.sendFence(order, epoch, onAck);
      }
      case 'arm-deadline':
        disarm(closing);
        closing.deadline = this.#clock.after(this.#ackMs, () => this.#timeIsUp(closing));
        return this.#awaitPatiently(closing);
      case 'disarm-deadline':
        return disarm(closing);
      case 'cut-node':
        this.#links.of(node)?.cut();
        return;
      case 'finish':
        return this.#finish(closing);
      case 'report-fenced':
        return report(closing, 'fenced');
      case 'report-disconnect':
        return report(closing, 'fenced-by-disconnect');
      default:
        return assertNever(effect);
    }
  }

  #timeIsUp(closing: Closing): void {
    closing.deadline = undefined;
    this.#later(closing, { kind: 'deadline' });
  }

  /** Starts the time of whoever waits, unless it runs. */
  #awaitPatiently(closing: Closing): void {
    closing.patience ??= this.#clock.after(this.#ackMs, () => {
      closing.patience = undefined;
      this.#later(closing, { kind: 'waited' });
    });
  }

  #finish(closing: Closing): void {
    const { workerRef } = closing;
    this.#authority.insist({ kind: 'finish-closing', workerRef }, () => {
      closing.patience?.[Symbol.dispose]();
      this.#closings.delete(workerRef);
      report(closing, 'fenced');
    });
  }
}

function disarm(closing: Closing): void {
  closing.deadline?.[Symbol.dispose]();
  closing.deadline = undefined;
}

function report(closing: Closing, fencing: Fencing): void {
  const { waiting } = closing;
  closing.waiting = [];
  for (const resolve of waiting) {
    resolve(fencing);
  }
}
