/**
 * The server's end of a one-way stream: what is sent when, and not faster than it is taken.
 *
 * Like ServerStream, it has its error listener always there, and a write callback that may never come
 * when the caller has gone.
 */
import { Metadata, type ServerWritableStream } from '@grpc/grpc-js';
import type { Refusal } from '#kernel/refusal.js';
import { statusOf } from './refusal-status.js';

export class ServerFeed<Out> {
  readonly #call: ServerWritableStream<unknown, Out>;
  #isOver = false;

  /** `onGone` is called once, when the stream is over for whatever reason. */
  constructor(call: ServerWritableStream<unknown, Out>, onGone: () => void) {
    this.#call = call;
    const gone = (): void => {
      if (!this.#isOver) {
        this.#isOver = true;
        onGone();
      }
    };
    call.on('error', () => undefined);
    call.on('cancelled', gone);
    call.on('close', gone);
    call.on('finish', gone);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Says that the call was taken, before there is anything to send: a quiet stream is not a dead one. */
  open(): void {
    if (!this.#isOver) {
      this.#call.sendMetadata(new Metadata());
    }
  }

  /** Hands one message to the transport. `onTaken` is called when HTTP/2 has it; never after the end. */
  send(message: Out, onTaken?: () => void): void {
    if (this.#isOver) {
      return;
    }
    this.#call.write(message, () => {
      if (!this.#isOver) {
        onTaken?.();
      }
    });
  }

  /** Ends with a named refusal, after what was handed over. */
  refuse(refusal: Refusal): void {
    if (!this.#isOver) {
      this.#call.emit('error', statusOf(refusal));
    }
  }
}
