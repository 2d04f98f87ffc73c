/**
 * Drives one presentation over its stream: performs what the stepper says, in order, and feeds back
 * what came of it.
 */

import type { ServerStream } from '#chassis/server-stream.js';
import type { PresentRequest, PresentResponse } from '#gen/wheelhouse/data/v1/data.js';
import type { Clock } from '#kernel/clock.js';
import type { Outcome } from '#kernel/outcome.js';
import type { CloseReasonName } from '#kernel/refusal.js';
import { OutputFrameMessage } from '../adapters/output-frame.js';
import type { DataConfig } from '../config.js';
import type { Basis, Grant } from '../domain/basis.js';
import type { AuthorityLink, Designation } from '../domain/link.js';
import type { GeometryMark, Handover } from '../domain/output-reader.js';
import {
  openPresentation,
  type Presentation,
  type PresentationEffect,
  type PresentationInput,
  stepPresentation,
} from '../domain/presentation.js';
import type { Exit, Terminal } from '../domain/terminal.js';
import { closedMessage, toldMessage } from './wire.js';

export type PresentStream = ServerStream<PresentRequest, PresentResponse | OutputFrameMessage>;

/** What the presenter needs of the terminal's owner. */
export interface Holder {
  readonly basis: Basis;
  readonly terminal: Terminal;
  /** How long the terminal may still be held at this moment, by all its presentations together. */
  holdLeftMs(): number;
  onHoldBegan(): void;
  heldBetween(fromMs: number, toMs: number): void;
  /** The presentation's place has changed: room may be made, an end may be told. */
  onPresenterMoved(): void;
  /** The presentation is over. */
  onPresenterClosed(presenter: Presenter): void;
  /** Its stream is over too. */
  onPresenterGone(presenter: Presenter): void;
}

export interface PresenterParts {
  readonly stream: PresentStream;
  readonly holder: Holder;
  readonly link: AuthorityLink;
  readonly clock: Clock;
  readonly config: DataConfig;
  readonly designation: Designation;
  /** The grant the presentation was opened by. */
  readonly grant: Grant;
  readonly presentation: bigint;
  readonly windowBytes: number;
  readonly holdLimitMs: number;
}

export class Presenter {
  readonly #parts: PresenterParts;
  #state: Presentation;
  /** The newest grant: what every handover is covered by. */
  #grant: Grant;
  #heldSinceMs: number | undefined;
  #holdTimer: Disposable | undefined;
  #isFenced = false;
  /** The fence under way or in force: a second one waits for the first. */
  #fencing: Promise<void> | undefined;
  /** The frame on its way, kept beside the stepper: a closed presentation's last one may still be there. */
  #atTransport: OutputFrameMessage | undefined;
  #lingerTimer: Disposable | undefined;
  #onConfirmed: (() => void) | undefined;

  constructor(parts: PresenterParts) {
    this.#parts = parts;
    this.#grant = parts.grant;
    this.#state = openPresentation({
      basis: parts.holder.basis,
      atSeq: parts.holder.terminal.producedSeq,
      windowBytes: parts.windowBytes,
      frameBytesMax: parts.config.frameBytesMax,
    });
  }

  /** First position this reader still needs kept. */
  get neededSeq(): bigint {
    return this.#atTransport?.neededSeq ?? this.#state.reader.window.sentSeq;
  }

  get isHolding(): boolean {
    return this.#state.isHolding;
  }

  /** Tells the reader where it begins. */
  begin(geometry: { readonly rows: number; readonly cols: number }): void {
    const { stream, windowBytes } = this.#parts;
    const value = {
      outSeq: this.#state.reader.window.sentSeq,
      geometry: { ...geometry },
      windowBytes,
    };
    stream.send({ event: { $case: 'opened', value } });
  }

  progressed(producedSeq: bigint, end: Exit | undefined): void {
    this.#step({ kind: 'progressed', producedSeq, end });
  }

  blocking(isBlocking: boolean): void {
    if (isBlocking !== this.#state.isHolding) {
      this.#step({ kind: 'blocking', isBlocking });
    }
  }

  acked(nextSeq: bigint): void {
    if (this.#state.closed !== undefined) {
      return this.#endOnceRead(nextSeq);
    }
    this.#step({ kind: 'acked', nextSeq });
    this.#parts.holder.onPresenterMoved();
  }

  /** The reader says that it is done. */
  left(): void {
    this.end('DETACHED');
    this.#parts.stream.end();
  }

  resized(mark: GeometryMark): void {
    this.#step({ kind: 'resized', mark });
  }

  authorityLost(): void {
    this.#step({ kind: 'authority-lost' });
  }

  end(reason: CloseReasonName): void {
    this.#step({ kind: 'ended', reason });
  }

  /**
   * Puts a fence in force: resolves when nothing of this stream can be released any more.
   *
   * Waits for the one frame the transport may still hold, then says why; if the reader does not take
   * it in time the stream is reset, status and positions with it (law P7).
   */
  fence(reason: CloseReasonName): Promise<void> {
    this.#fencing ??= this.#fence(reason);
    return this.#fencing;
  }

  async #fence(reason: CloseReasonName): Promise<void> {
    const wasOpen = this.#state.closed === undefined;
    this.#isFenced = true;
    this.end(reason);
    if (!(await this.#isTransportEmpty())) {
      this.#parts.stream.reset();
    } else if (wasOpen) {
      this.#sendClosed(reason);
    }
  }

  /** The stream is over: whatever was open ends here, and nothing waits for the reader any more. */
  gone(): void {
    this.end('DETACHED');
    this.#onConfirmed?.();
    this.#lingerTimer?.[Symbol.dispose]();
    this.#parts.holder.onPresenterGone(this);
  }

  #isTransportEmpty(): Promise<boolean> {
    const { stream, clock, config } = this.#parts;
    if (this.#atTransport === undefined || stream.isOver) {
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const deadline = clock.after(config.fenceWaitMs, () => resolve(false));
      this.#onConfirmed = () => {
        deadline[Symbol.dispose]();
        resolve(true);
      };
    });
  }

  #step(input: PresentationInput): void {
    const { state, effects } = stepPresentation(this.#state, input);
    this.#state = state;
    for (const effect of effects) {
      this.#perform(effect);
    }
  }

  #perform(effect: PresentationEffect): void {
    switch (effect.kind) {
      case 'ask':
        return this.#ask();
      case 'hand-over':
        return this.#handOver(effect.handover);
      case 'hold-began':
        return this.#beginHold();
      case 'hold-ended':
        return this.#endHold();
      case 'close':
        return this.#close(effect.reason);
    }
  }

  #ask(): void {
    const { link, designation, presentation } = this.#parts;
    link.ask(
      { ...designation, operation: 'OBSERVE', presentation, replace: false },
      (answer) => this.#answered(answer),
      () => this.authorityLost(),
    );
  }

  #answered(answer: Outcome<Grant>): void {
    if (answer.kind === 'granted') {
      this.#grant = answer.value;
    }
    this.#step({ kind: 'answered', answer });
    this.#parts.holder.onPresenterMoved();
  }

  /** The last look before a byte leaves: a fence heard since the answer came stops it here. */
  #handOver(handover: Handover): void {
    const { link, stream } = this.#parts;
    if (this.#state.closed !== undefined && handover.kind === 'frame') {
      return;
    }
    if (link.isFenced(this.#grant)) {
      return this.#step({ kind: 'withheld', handover });
    }
    if (handover.kind === 'frame') {
      return this.#sendFrame(handover.fromSeq, handover.lengthBytes);
    }
    stream.send(toldMessage(handover));
  }

  #sendFrame(fromSeq: bigint, lengthBytes: number): void {
    const { stream, holder } = this.#parts;
    this.#atTransport = new OutputFrameMessage(holder.terminal, fromSeq, lengthBytes);
    stream.send(this.#atTransport, () => this.#confirmed());
  }

  #confirmed(): void {
    this.#atTransport = undefined;
    this.#step({ kind: 'confirmed' });
    this.#onConfirmed?.();
    this.#parts.holder.onPresenterMoved();
  }

  /** A timer never moves a byte; what it may do is end the presentation (law B3). */
  #beginHold(): void {
    const { clock, config, holder, holdLimitMs } = this.#parts;
    this.#heldSinceMs = clock.monotonic();
    holder.onHoldBegan();
    const hasEnded = holder.terminal.end !== undefined;
    const limitMs = hasEnded
      ? Math.max(holdLimitMs, config.endGraceMs)
      : Math.min(holdLimitMs, holder.holdLeftMs());
    const spent = { kind: 'hold-spent', limitMs } as const;
    if (limitMs === 0) {
      return this.#step(spent);
    }
    this.#holdTimer = clock.after(limitMs, () => this.#step(spent));
  }

  #endHold(): void {
    const { clock, holder } = this.#parts;
    this.#holdTimer?.[Symbol.dispose]();
    if (this.#heldSinceMs !== undefined) {
      holder.heldBetween(this.#heldSinceMs, clock.monotonic());
      this.#heldSinceMs = undefined;
    }
  }

  #close(reason: CloseReasonName): void {
    const { link, presentation, designation, holder } = this.#parts;
    this.#atTransport?.keep();
    link.presentationEnded(presentation);
    link.farewell(designation.caller);
    if (!this.#isFenced) {
      this.#sendClosed(reason);
    }
    holder.onPresenterClosed(this);
  }

  /**
   * Says why. The status follows when the reader has acknowledged all it was sent: an ack that meets
   * an ended stream is a write error at the client, which would cost it this very message.
   * A reader that takes longer than it may is cut off, and its memory is free.
   */
  #sendClosed(reason: CloseReasonName): void {
    const { stream, clock, config, holder } = this.#parts;
    const { reader } = this.#state;
    if (stream.isOver) {
      return; // and nothing is left to wait for: `gone` came while a fence waited for the transport
    }
    stream.send({
      event: { $case: 'closed', value: closedMessage(reason, reader, holder.terminal) },
    });
    this.#lingerTimer = clock.after(config.lingerMs, () => stream.endOrReset());
    this.#endOnceRead(reader.window.ackedSeq);
  }

  #endOnceRead(ackedSeq: bigint): void {
    if (ackedSeq >= this.#state.reader.window.sentSeq) {
      this.#parts.stream.end();
    }
  }
}
