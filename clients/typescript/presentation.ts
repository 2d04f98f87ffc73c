/** An operator's look at a worker's terminal, from its client's side. */
import type { Geometry, PresentRequest } from '#gen/wheelhouse/data/v1/data.js';
import type { DataConnection } from './connect.js';
import { type OutputConsumer, OutputStream } from './output-stream.js';
import type { StreamEnd } from './stream-end.js';

/** All a look designates: the worker, and the generation it was last seen with. */
export interface Designation {
  readonly workerRef: string;
  readonly generation: bigint;
}

export interface PresentationTerms {
  readonly worker: Designation;
  /** Output that may be unacknowledged, in bytes; the service's own choice when left out. */
  readonly windowBytes?: number;
  /** How long this reader may hold the terminal, in milliseconds; the service's default when left out. */
  readonly holdLimitMs?: number | undefined;
  /** Whether an older look of the same operator gives way. */
  readonly replace?: boolean;
}

/** What is true from the first byte on. Nothing earlier is ever shown (law B4). */
export interface Opening {
  readonly outSeq: bigint;
  readonly geometry: Geometry;
}

/** Needs a living control bind of the same certificate for as long as it lasts. */
export class Presentation {
  readonly opening: Opening;
  /** Resolves once nothing more will be passed on. Never rejects. */
  readonly ended: Promise<StreamEnd>;
  readonly #stream: OutputStream<PresentRequest>;

  private constructor(stream: OutputStream<PresentRequest>, opening: Opening) {
    this.#stream = stream;
    this.opening = opening;
    this.ended = stream.ended;
  }

  /**
   * Opens a look. Throws a `RefusedError` by the first broken link of the chain, or an
   * `UnreachableError`. The consumer may be called before this returns.
   */
  static async open(
    { client, service }: DataConnection,
    terms: PresentationTerms,
    consumer: OutputConsumer,
  ): Promise<Presentation> {
    const side = {
      service,
      ackMessage: (nextSeq: bigint): PresentRequest => ({
        operation: { $case: 'ack', value: { nextSeq } },
      }),
    };
    const stream = new OutputStream<PresentRequest>(client.present(), side, consumer);
    stream.send({
      operation: {
        $case: 'open',
        value: {
          workerRef: terms.worker.workerRef,
          expectedWorkerGeneration: terms.worker.generation,
          windowBytes: terms.windowBytes ?? 0,
          holdLimitMs: terms.holdLimitMs,
          replace: terms.replace ?? false,
        },
      },
    });
    const { outSeq, geometry = { rows: 0, cols: 0 } } = await stream.opened;
    return new Presentation(stream, { outSeq, geometry });
  }

  /** Next byte the consumer has not taken. */
  get takenSeq(): bigint {
    return this.#stream.takenSeq;
  }

  /** Leaves; the terminal and its agent go on (law P8). Not a byte is passed on from now. */
  async detach(): Promise<StreamEnd> {
    return await this.#stream.leave();
  }
}
