/** FollowStatus: presented and held, latest wins, never stored (law P9). */
import type { ServerWritableStream } from '@grpc/grpc-js';
import { ServerFeed } from '#chassis/server-feed.js';
import type { FollowStatusRequest, FollowStatusResponse } from '#gen/wheelhouse/data/v1/data.js';
import type { Node } from '../node.js';

type Call = ServerWritableStream<FollowStatusRequest, FollowStatusResponse>;

export function followStatus(node: Node): (call: Call) => void {
  return (call) => new Follower(node, call).tell();
}

/** Tells the newest status, at most so often, and never while the last one is still on its way. */
class Follower {
  readonly #node: Node;
  readonly #feed: ServerFeed<FollowStatusResponse>;
  readonly #watch: Disposable;
  #pause: Disposable | undefined;
  #isOnItsWay = false;
  /** Whether something has changed since what was told last. */
  #isDue = false;

  constructor(node: Node, call: Call) {
    this.#node = node;
    this.#feed = new ServerFeed(call, () => this.#stop());
    this.#watch = node.carriers.watchStatus(() => this.tell());
    node.draining.addEventListener('abort', this.#refuse);
  }

  tell(): void {
    if (this.#pause !== undefined || this.#isOnItsWay) {
      this.#isDue = true;
      return;
    }
    this.#isDue = false;
    this.#isOnItsWay = true;
    this.#feed.send({ terminals: this.#terminals() }, () => {
      this.#isOnItsWay = false;
      this.#tellWhatIsDue();
    });
    this.#pause = this.#node.clock.after(this.#node.config.statusMs, () => {
      this.#pause = undefined;
      this.#tellWhatIsDue();
    });
  }

  #tellWhatIsDue(): void {
    if (this.#isDue) {
      this.tell();
    }
  }

  readonly #refuse = (): void => {
    this.#feed.refuse({ reason: 'SERVICE_DRAINING', facts: {} });
  };

  #stop(): void {
    this.#node.draining.removeEventListener('abort', this.#refuse);
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
