/**
 * The server's end of a two-way stream, with grpc-js's traps closed:
 * a read side that is attached at once, an error listener that is always there, a write whose
 * callback may never come when the caller has gone, and a reset for when only a cut will do.
 *
 * A caller that asks and asks and reads no answer is not read either: its answers would pile up here.
 */
import type { ServerDuplexStream } from '@grpc/grpc-js';
import type { Refusal } from '#kernel/refusal.js';
import { resetStream } from './http2-reset.js';
import { statusOf } from './refusal-status.js';

export interface StreamEvents<In> {
  onMessage(message: In): void;
  /** The caller will send nothing more; it still reads. */
  onHalfClose(): void;
  /** The stream is over, for whatever reason. Called once; nothing can be sent after it. */
  onGone(): void;
}

/**
 * Messages handed over and not taken, beyond which nothing is read from the caller.
 *
 * Answers to one caller's small requests, about 1 KB of memory each. Output does not come near it: it
 * is handed over one frame at a time.
 */
const untakenMaxDefault = 64;

export class ServerStream<In, Out> {
  readonly #call: ServerDuplexStream<In, Out>;
  readonly #untakenMax: number;
  #isOver = false;
  /** Whether the end was said: what is sent after it would be a write error. */
  #isEnding = false;
  /** Whether the owner wants nothing read. */
  #isPaused = false;
  /** Whether the caller has too much left to take. */
  #isSwamped = false;

  /** `untakenMax` is for an owner with a bound of its own. */
  constructor(call: ServerDuplexStream<In, Out>, untakenMax = untakenMaxDefault) {
    this.#call = call;
    this.#untakenMax = untakenMax;
  }

  /** Begins to read. To be called in the same turn as the handler. */
  attach(events: StreamEvents<In>): void {
    const gone = (): void => {
      if (!this.#isOver) {
        this.#isOver = true;
        events.onGone();
      }
    };
    this.#call.on('error', () => undefined);
    this.#call.on('cancelled', gone);
    this.#call.on('close', gone);
    this.#call.on('finish', gone);
    this.#call.on('end', () => events.onHalfClose());
    this.#call.on('data', (message: In) => {
      if (!this.#isOver) {
        events.onMessage(message);
      }
    });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Messages handed over that HTTP/2 has not taken yet. */
  get backlog(): number {
    return this.#call.writableLength;
  }

  /** Hands one message to the transport. `onTaken` is called when HTTP/2 has it; never after the end. */
  send(message: Out, onTaken?: () => void): void {
    if (this.#isOver || this.#isEnding) {
      return;
    }
    this.#call.write(message, () => {
      if (!this.#isOver) {
        this.#taken();
        onTaken?.();
      }
    });
    if (this.backlog > this.#untakenMax) {
      this.#isSwamped = true;
      this.#call.pause();
    }
  }

  /** Stops reading from the caller: its window fills and it waits. */
  pause(): void {
    this.#isPaused = true;
    this.#call.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#readOn();
  }

  #taken(): void {
    if (this.#isSwamped && this.backlog <= this.#untakenMax / 2) {
      this.#isSwamped = false;
      this.#readOn();
    }
  }

  #readOn(): void {
    if (!this.#isPaused && !this.#isSwamped) {
      this.#call.resume();
    }
  }

  /** Ends after what was handed over. */
  end(): void {
    if (!this.#isOver && !this.#isEnding) {
      this.#isEnding = true;
      this.#call.end();
    }
  }

  /** Ends with a named refusal, after what was handed over. */
  refuse(refusal: Refusal): void {
    if (!this.#isOver && !this.#isEnding) {
      this.#isEnding = true;
      this.#call.emit('error', statusOf(refusal));
    }
  }

  /** Ends if the caller has read everything there is, else cuts. */
  endOrReset(): void {
    if (this.backlog === 0) {
      this.end();
    } else if (!this.#isOver) {
      this.reset();
    }
  }

  /** Cuts the HTTP/2 stream: nothing that is still queued goes out, and no status either. */
  reset(): void {
    resetStream(this.#call);
  }
}
