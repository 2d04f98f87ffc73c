/** FollowStatus: the whole status, the newest replacing what was not taken yet. Never stored. */
import type { ServerWritableStream } from '@grpc/grpc-js';
import { ServerFeed } from '#chassis/server-feed.js';
import type {
  FollowStatusRequest,
  FollowStatusResponse,
  WorkerStatus,
} from '#gen/wheelhouse/authority/v1/authority.js';
import type { State } from '../domain/state.js';
import type { Room } from './room.js';

export function followStatus(
  room: Room,
): (call: ServerWritableStream<FollowStatusRequest, FollowStatusResponse>) => void {
  return (call) => new Following(room, call).begin();
}

class Following {
  readonly #room: Room;
  readonly #feed: ServerFeed<FollowStatusResponse>;
  #following: Disposable | undefined;
  #told: State | undefined;
  #isBusy = false;

  constructor(room: Room, call: ServerWritableStream<FollowStatusRequest, FollowStatusResponse>) {
    this.#room = room;
    this.#feed = new ServerFeed(call, () => this.#leave());
  }

  begin(): void {
    const { authority, streams } = this.#room;
    if (streams.enter(this.#feed)) {
      this.#following = authority.follow(() => this.#pump());
      this.#pump();
    }
  }

  /** At most one status is on its way; what changes meanwhile is in the next. */
  #pump(): void {
    const { state } = this.#room.authority;
    if (this.#isBusy || this.#feed.isOver || state === this.#told) {
      return;
    }
    this.#isBusy = true;
    this.#told = state;
    this.#feed.send({ workers: statusOf(state) }, () => {
      this.#isBusy = false;
      this.#pump();
    });
  }

  #leave(): void {
    this.#following?.[Symbol.dispose]();
    this.#room.streams.leave(this.#feed);
  }
}

function statusOf({ world, presence }: State): WorkerStatus[] {
  return [...world.workers.values()]
    .filter(({ standing }) => standing === 'open')
    .map(({ workerRef, occupancy }) => {
      const attachment = occupancy?.attachment;
      const attached = attachment?.phase === 'active';
      const presented = attached && presence.presentations.has(attachment.attachmentRef);
      return { workerRef, attached, presented };
    });
}
