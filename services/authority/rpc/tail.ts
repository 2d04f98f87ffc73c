/** Tail: every durable fact after an index, then those to come, in order and not faster than they are taken. */
import type { ServerWritableStream } from '@grpc/grpc-js';
import { ServerFeed } from '#chassis/server-feed.js';
import type { TailRequest, TailResponse } from '#gen/wheelhouse/authority/v1/authority.js';
import type { Room } from './room.js';

export function tail(room: Room): (call: ServerWritableStream<TailRequest, TailResponse>) => void {
  return (call) => new Tailing(room, call).begin();
}

/** One reader: a page is handed over, and the next is read when the transport has taken it. */
class Tailing {
  readonly #room: Room;
  readonly #feed: ServerFeed<TailResponse>;
  #following: Disposable | undefined;
  #nextAfter: bigint;
  #isBusy = false;

  constructor(room: Room, call: ServerWritableStream<TailRequest, TailResponse>) {
    this.#room = room;
    this.#nextAfter = call.request.afterIndex;
    this.#feed = new ServerFeed(call, () => this.#leave());
  }

  begin(): void {
    const { authority, streams } = this.#room;
    if (streams.enter(this.#feed)) {
      this.#feed.open();
      this.#following = authority.follow(() => this.#pump());
      this.#pump();
    }
  }

  #pump(): void {
    const { journal, settings } = this.#room;
    if (this.#isBusy || this.#feed.isOver || this.#nextAfter >= journal.lastIndex) {
      return;
    }
    const rows = journal.rowsAfter(this.#nextAfter, settings.tailPageRows);
    const last = rows.at(-1);
    if (last === undefined) {
      return;
    }
    this.#isBusy = true;
    this.#nextAfter = last.index;
    for (const row of rows) {
      const { index, atMs, kind, body } = row;
      const fact = { index, atMs: BigInt(atMs), kind, body: Buffer.from(body, 'utf8') };
      this.#feed.send(fact, row === last ? () => this.#taken() : undefined);
    }
  }

  #taken(): void {
    this.#isBusy = false;
    this.#pump();
  }

  #leave(): void {
    this.#following?.[Symbol.dispose]();
    this.#room.streams.leave(this.#feed);
  }
}
