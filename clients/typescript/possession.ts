/** An agent's terminal, from its client's side: the stream whose end ends the program. */
import type { Geometry, PossessRequest } from '#gen/wheelhouse/data/v1/data.js';
import type { Refusal } from '#kernel/refusal.js';
import type { DataConnection } from './connect.js';
import {
  emptyInput,
  type InputQueue,
  inputAccepted,
  inputRefused,
  inputSent,
  nextInput,
  queued,
  queuedSeq,
} from './input-queue.js';
import { type OutputConsumer, OutputStream } from './output-stream.js';
import type { Designation, Opening } from './presentation.js';
import type { StreamEnd } from './stream-end.js';

export interface PossessionTerms {
  readonly worker: Designation;
  /** The command and its arguments. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly geometry: Geometry;
  /** Output that may be unacknowledged, in bytes; the service's own choice when left out. */
  readonly windowBytes?: number;
  /** Whether nobody here reads the output: the terminal is drained all the same. */
  readonly isHeadless: boolean;
}

export interface PossessionConsumer extends OutputConsumer {
  /** A resize was refused; the terminal keeps its size. */
  resizeRefused?(refusal: Refusal | undefined): void;
}

interface Waiting {
  readonly untilSeq: bigint;
  readonly settle: () => void;
}

/** A refused frame goes again after this long: authority may be restarting, which takes a moment. */
const INPUT_RETRY_MS = 250;

/** Needs a living agent bind of the same certificate, but for the grace after authority's restart. */
export class Possession {
  readonly opening: Opening;
  /** Resolves once the terminal is gone. Never rejects. */
  readonly ended: Promise<StreamEnd>;
  readonly #stream: OutputStream<PossessRequest>;
  readonly #input: InputSender;
  #resizes = 0n;

  private constructor(stream: OutputStream<PossessRequest>, input: InputSender, opening: Opening) {
    this.#stream = stream;
    this.#input = input;
    this.opening = opening;
    this.ended = stream.ended;
  }

  /**
   * Starts a program. Throws a `RefusedError` (`spawn-failed` when the program cannot be started) or
   * an `UnreachableError`. The consumer may be called before this returns.
   */
  static async open(
    { client, service }: DataConnection,
    terms: PossessionTerms,
    consumer: PossessionConsumer,
  ): Promise<Possession> {
    const input = new InputSender((message) => stream.send(message));
    const side = {
      service,
      ackMessage: (nextSeq: bigint): PossessRequest => ({
        operation: { $case: 'ack', value: { nextSeq } },
      }),
      inputAcked: (nextSeq: bigint) => input.accepted(nextSeq),
      refused: (request: bigint, refusal: Refusal | undefined) =>
        request === 0n ? input.refused(refusal) : consumer.resizeRefused?.(refusal),
    };
    const stream = new OutputStream<PossessRequest>(client.possess(), side, consumer);
    void stream.ended.then(() => input.over());
    stream.send({
      operation: {
        $case: 'open',
        value: {
          workerRef: terms.worker.workerRef,
          expectedWorkerGeneration: terms.worker.generation,
          argv: [...terms.argv],
          env: { ...terms.env },
          geometry: terms.geometry,
          windowBytes: terms.windowBytes ?? 0,
          headless: terms.isHeadless,
        },
      },
    });
    const { outSeq, geometry = terms.geometry } = await stream.opened;
    return new Possession(stream, input, { outSeq, geometry });
  }

  /** Resolves when the terminal has been given every byte, or is gone. Waiting for it bounds memory. */
  async write(bytes: Buffer): Promise<void> {
    if (!this.#stream.isOver) {
      await this.#input.write(bytes);
    }
  }

  /** Asks for another size, on behalf of the agent itself. */
  resize(geometry: Geometry): void {
    this.#resizes += 1n;
    this.#stream.send({
      operation: { $case: 'resize', value: { request: this.#resizes, geometry } },
    });
  }

  /** Ends the terminal at once: its program is hung up, and of what it still writes nothing comes. */
  end(): void {
    this.#stream.halfClose();
  }

  /** Cuts the stream; the service ends the terminal. */
  abort(): void {
    this.#stream.abort(new Error('aborted'));
  }
}

/** Sends input frame by frame, the next when the one before is in the terminal. */
class InputSender {
  #queue: InputQueue = emptyInput;
  #waiting: Waiting[] = [];
  #retry: NodeJS.Timeout | undefined;
  readonly #send: (message: PossessRequest) => void;

  constructor(send: (message: PossessRequest) => void) {
    this.#send = send;
  }

  write(bytes: Buffer): Promise<void> {
    this.#queue = queued(this.#queue, bytes);
    const untilSeq = queuedSeq(this.#queue);
    return new Promise((settle) => {
      this.#waiting.push({ untilSeq, settle });
      this.#proceed();
    });
  }

  accepted(nextSeq: bigint): void {
    this.#queue = inputAccepted(this.#queue, nextSeq);
    this.#proceed();
  }

  /**
   * `terminal-not-reading` comes after the service has waited its second, so the rest goes at once;
   * any other refusal waits here.
   */
  refused(refusal: Refusal | undefined): void {
    this.#queue = inputRefused(this.#queue);
    if (refusal?.reason === 'TERMINAL_NOT_READING') {
      this.#proceed();
      return;
    }
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#proceed();
    }, INPUT_RETRY_MS);
  }

  /** Nothing more will be accepted. */
  over(): void {
    clearTimeout(this.#retry);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { settle } of waiting) {
      settle();
    }
  }

  #proceed(): void {
    const { acceptedSeq } = this.#queue;
    const settled = this.#waiting.filter(({ untilSeq }) => untilSeq <= acceptedSeq);
    this.#waiting = this.#waiting.filter(({ untilSeq }) => untilSeq > acceptedSeq);
    for (const { settle } of settled) {
      settle();
    }
    const frame = this.#retry === undefined ? nextInput(this.#queue) : undefined;
    if (frame !== undefined) {
      this.#queue = inputSent(this.#queue, frame.payload);
      this.#send({ operation: { $case: 'input', value: frame } });
    }
  }
}
