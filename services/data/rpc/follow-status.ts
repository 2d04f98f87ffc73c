/** FollowStatus: presented and held, latest wins, never stored (law P9). */
import type { ServerWritableStream } from '@grpc/grpc-js';
import type { FollowStatusRequest, FollowStatusResponse } from '#gen/wheelhouse/data/v1/data.js';
import type { Node } from '../node.js';

type Call = ServerWritableStream<FollowStatusRequest, FollowStatusResponse>;

export function followStatus(node: Node): (call: Call) => void {
  return (call) => {
    const follower = new Follower(node, call);
    call.on('error', () => undefined);
    call.on('cancelled', () => follower.stop());
    call.on('close', () => follower.stop());
    follower.tell();
  };
}

/** Tells the newest status, at most so often, and never while the last one is still on its way. */
class Follower {
  readonly #node: Node;
  readonly #call: Call;
  readonly #watch: Disposable;
  #pause: Disposable | undefined;
  #isDue = false;

  constructor(node: Node, call: Call) {
    this.#node = node;
    this.#call = call;
    this.#watch = node.carriers.watchStatus(() => this.tell());
  }

  tell(): void {
    if (this.#pause !== undefined || this.#call.writableLength > 0) {
      this.#isDue = true;
      return;
    }
    this.#isDue = false;
    this.#call.write({ terminals: this.#terminals() });
    this.#pause = this.#node.clock.after(this.#node.config.statusMs, () => {
      this.#pause = undefined;
      if (this.#isDue) {
        this.tell();
      }
    });
  }

  stop(): void {
    this.#watch[Symbol.dispose]();
    this.#pause?.[Symbol.dispose]();
  }

  #terminals(): FollowStatusResponse['terminals'] {
    return this.#node.carriers.attached().map((carrier) => ({
      workerRef: carrier.basis.workerRef,
      presented: carrier.isPresented,
      held: carrier.isHeld,
      heldMs: BigInt(Math.round(carrier.heldMs)),
    }));
  }
}
