/** Present: the operator's look at a terminal. Resolved at open and at every release (laws P2, P6). */
import type { handleBidiStreamingCall } from '@grpc/grpc-js';
import { bidi } from '#chassis/bidi.js';
import type { PresentOpen, PresentRequest, PresentResponse } from '#gen/wheelhouse/data/v1/data.js';
import { granted, type Outcome, refused } from '#kernel/outcome.js';
import type { Refusal } from '#kernel/refusal.js';
import type { OutputFrameMessage } from '../adapters/output-frame.js';
import type { DataConfig } from '../config.js';
import { departure, type Grant } from '../domain/basis.js';
import type { Designation } from '../domain/link.js';
import type { Node } from '../node.js';
import type { Turn } from '../openings.js';
import type { Presenter, PresentStream } from './presenter.js';
import { designate, toWindowBytes } from './wire.js';

type Response = PresentResponse | OutputFrameMessage;

export function present(node: Node): handleBidiStreamingCall<PresentRequest, Response> {
  return bidi((stream, { certificate }) => new PresentCall(node, stream, certificate).attach());
}

/** One call from its first message on. */
class PresentCall {
  readonly #node: Node;
  readonly #stream: PresentStream;
  readonly #certificate: Uint8Array;
  #hasAsked = false;
  #turn: Turn | undefined;
  #presenter: Presenter | undefined;

  constructor(node: Node, stream: PresentStream, certificate: Uint8Array) {
    this.#node = node;
    this.#stream = stream;
    this.#certificate = certificate;
  }

  attach(): void {
    this.#stream.attach({
      onMessage: (message) => this.#hear(message),
      onHalfClose: () => this.#leave(),
      onGone: () => this.#gone(),
    });
  }

  #gone(): void {
    this.#presenter?.gone();
    this.#turn?.giveUp();
  }

  #hear({ operation }: PresentRequest): void {
    if (operation?.$case === 'open' && !this.#hasAsked) {
      this.#hasAsked = true;
      return this.#open(operation.value);
    }
    if (operation === undefined) {
      return; // an operation of a newer client: ignored
    }
    if (this.#presenter === undefined) {
      const rule = 'the first message, once, and acks only after Opened';
      return this.#stream.refuse({ reason: 'REQUEST_INVALID', facts: { field: 'open', rule } });
    }
    if (operation.$case === 'ack') {
      this.#presenter.acked(operation.value.nextSeq);
    } else {
      this.#presenter.end('PROTOCOL_VIOLATION');
    }
  }

  /** A reader that says it is done detaches: the call ends well. */
  #leave(): void {
    if (this.#presenter === undefined) {
      this.#stream.end();
    } else {
      this.#presenter.left();
    }
  }

  #open(open: PresentOpen): void {
    const { link, config, openings } = this.#node;
    const holdLimitMs = toHoldLimitMs(open, config);
    if (holdLimitMs.kind === 'refused') {
      return this.#stream.refuse(holdLimitMs.refusal);
    }
    const designated = designate(open, () => link.introduce(this.#certificate));
    if (designated.kind === 'refused') {
      return this.#stream.refuse(designated.refusal);
    }
    const designation = designated.value;
    this.#turn = openings.enter(designation.caller, {
      ask: (done) => this.#ask(open, designation, holdLimitMs.value, done),
      giveUp: () => link.farewell(designation.caller),
    });
  }

  #ask(open: PresentOpen, designation: Designation, holdLimitMs: number, done: () => void): void {
    const { link } = this.#node;
    const presentation = link.nextPresentation();
    const refuse = (refusal: Refusal): void => {
      link.farewell(designation.caller);
      this.#stream.refuse(refusal);
    };
    link.ask(
      { ...designation, operation: 'PRESENT', presentation, replace: open.replace },
      (answer) => {
        done();
        const begun =
          answer.kind === 'refused'
            ? answer
            : this.#begin(open, designation, answer.value, presentation, holdLimitMs);
        if (begun.kind === 'refused') {
          refuse(begun.refusal);
        }
      },
      () => {
        done();
        refuse({ reason: 'AUTHORITY_UNREACHABLE', facts: {} });
      },
    );
  }

  /** Compared once more with what this node carries, in the same turn in which it is registered. */
  #begin(
    open: PresentOpen,
    designation: Designation,
    grant: Grant,
    presentation: bigint,
    holdLimitMs: number,
  ): Outcome<void> {
    const { link, clock, config, carriers } = this.#node;
    const carrier = carriers.attachedAt(designation.workerRef);
    if (
      carrier === undefined ||
      departure(carrier.basis, grant) !== undefined ||
      link.isFenced(grant)
    ) {
      link.presentationEnded(presentation);
      return refused('CARRIER_NOT_ATTACHED', { worker: designation.workerRef });
    }
    const { windowBytesDefault, windowBytesMax } = config;
    const windowBytes = toWindowBytes(open.windowBytes, windowBytesDefault, windowBytesMax);
    const stream = this.#stream;
    this.#presenter = carrier.present({
      stream,
      link,
      clock,
      config,
      designation,
      grant,
      presentation,
      windowBytes,
      holdLimitMs,
    });
    if (stream.isOver) {
      this.#presenter.gone();
    }
    return granted(undefined);
  }
}

/** Refuses REQUEST_INVALID beyond the longest. */
function toHoldLimitMs({ holdLimitMs }: PresentOpen, config: DataConfig): Outcome<number> {
  if (holdLimitMs === undefined) {
    return granted(config.holdLimitMsDefault);
  }
  return holdLimitMs <= config.holdLimitMsMax
    ? granted(holdLimitMs)
    : refused('REQUEST_INVALID', {
        field: 'open.holdLimitMs',
        rule: `0 to ${config.holdLimitMsMax}`,
      });
}
