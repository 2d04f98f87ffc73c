/**
 * Drives one possession over its stream: the agent's output, its input and the size of its terminal.
 */

import { toRefused } from '#chassis/refusal-status.js';
import type { ServerStream } from '#chassis/server-stream.js';
import type { PossessRequest, PossessResponse } from '#gen/wheelhouse/data/v1/data.js';
import type { Clock } from '#kernel/clock.js';
import { type Outcome, refused } from '#kernel/outcome.js';
import type { CloseReasonName, Refusal } from '#kernel/refusal.js';
import { OutputFrameMessage } from '../adapters/output-frame.js';
import type { DataConfig } from '../config.js';
import type { Grant } from '../domain/basis.js';
import {
  emptyLine,
  type InputLine,
  type LineEffect,
  type LineInput,
  stepLine,
} from '../domain/input-line.js';
import type { AuthorityLink, Designation } from '../domain/link.js';
import type { GeometryMark, Handover } from '../domain/output-reader.js';
import {
  neededSeq,
  openPossession,
  type Possession,
  type PossessionEffect,
  type PossessionInput,
  stepPossession,
} from '../domain/possession.js';
import type { Exit, Geometry, Terminal } from '../domain/terminal.js';
import { closedMessage, toGeometry, toldMessage } from './wire.js';

export type PossessStream = ServerStream<PossessRequest, PossessResponse | OutputFrameMessage>;

export interface PossessorParts {
  readonly stream: PossessStream;
  readonly link: AuthorityLink;
  readonly clock: Clock;
  readonly config: DataConfig;
  readonly designation: Designation;
  readonly windowBytes: number;
  readonly isHeadless: boolean;
}

/** What the possessor needs of the terminal's owner. */
export interface Owner {
  readonly terminal: Terminal;
  /** Whether a grant still leads to this very terminal, and no fence has been heard since (law P7). */
  admits(grant: Grant): boolean;
  /** The terminal has another size from here on. */
  onResized(geometry: Geometry): void;
  /** The possession's place has changed: room may be made. */
  onPossessorMoved(): void;
  /** The possession is over; whatever is left of the terminal ends with it. */
  onPossessorClosed(): void;
}

interface Resizing {
  readonly request: bigint;
  readonly geometry: Geometry;
}

export class Possessor {
  readonly #parts: PossessorParts;
  readonly #owner: Owner;
  #state: Possession;
  #line: InputLine = emptyLine;
  readonly #lineInputs: LineInput[] = [];
  #isLineStepping = false;
  /** The frame on its way. */
  #atTransport: OutputFrameMessage | undefined;
  #blockTimer: Disposable | undefined;
  #lingerTimer: Disposable | undefined;
  /** The newest size asked for and not decided: older ones have given way to it. */
  #resizing: Resizing | undefined;
  #isAskingResize = false;

  constructor(parts: PossessorParts, owner: Owner) {
    this.#parts = parts;
    this.#owner = owner;
    this.#state = openPossession({
      windowBytes: parts.windowBytes,
      frameBytesMax: parts.config.frameBytesMax,
      isHeadless: parts.isHeadless,
    });
  }

  /** First position this reader still needs kept. */
  get neededSeq(): bigint {
    return this.#atTransport?.neededSeq ?? neededSeq(this.#state);
  }

  get isClosed(): boolean {
    return this.#state.closed !== undefined;
  }

  begin(geometry: Geometry): void {
    const { stream, windowBytes } = this.#parts;
    const value = { outSeq: 0n, geometry: { ...geometry }, windowBytes };
    stream.send({ event: { $case: 'opened', value } });
  }

  progressed(producedSeq: bigint, end: Exit | undefined): void {
    this.#step({ kind: 'progressed', producedSeq, end });
  }

  resized(mark: GeometryMark): void {
    this.#step({ kind: 'resized', mark });
  }

  mayEnd(): void {
    this.#step({ kind: 'may-end' });
  }

  end(reason: CloseReasonName): void {
    this.#step({ kind: 'ended', reason });
  }

  /** The stream is over: an open possession ends here. */
  gone(): void {
    this.end('RELEASED');
    this.#lingerTimer?.[Symbol.dispose]();
  }

  /** The agent says that it is done: its terminal ends. */
  left(): void {
    this.end('RELEASED');
    this.#parts.stream.end();
  }

  writable(): void {
    this.#stepLine({ kind: 'writable' });
  }

  /** One message of the agent's, after `open`. It may be on its way when the possession closes. */
  hear({ operation }: PossessRequest): void {
    if (this.isClosed) {
      return;
    }
    switch (operation?.$case) {
      case 'ack':
        this.#step({ kind: 'acked', nextSeq: operation.value.nextSeq });
        return this.#owner.onPossessorMoved();
      case 'input':
        return this.#stepLine({ kind: 'frame', ...operation.value });
      case 'resize':
        return this.#hearResize(operation.value.request, operation.value.geometry);
      case 'open':
        return this.end('PROTOCOL_VIOLATION');
      case undefined:
        return; // an operation of a newer client: ignored
    }
  }

  #step(input: PossessionInput): void {
    const { state, effects } = stepPossession(this.#state, input);
    this.#state = state;
    for (const effect of effects) {
      this.#perform(effect);
    }
  }

  #perform(effect: PossessionEffect): void {
    switch (effect.kind) {
      case 'hand-over':
        return this.#handOver(effect.handover);
      case 'close':
        return this.#close(effect.reason);
    }
  }

  #handOver(handover: Handover): void {
    if (handover.kind === 'frame') {
      return this.#sendFrame(handover.fromSeq, handover.lengthBytes);
    }
    this.#parts.stream.send(toldMessage(handover));
  }

  #sendFrame(fromSeq: bigint, lengthBytes: number): void {
    const frame = new OutputFrameMessage(this.#owner.terminal, fromSeq, lengthBytes);
    this.#atTransport = frame;
    this.#parts.stream.send(frame, () => {
      this.#atTransport = undefined;
      this.#step({ kind: 'confirmed' });
      this.#owner.onPossessorMoved();
    });
  }

  #close(reason: CloseReasonName): void {
    this.#atTransport?.keep();
    const { stream, clock, config, link, designation } = this.#parts;
    this.#blockTimer?.[Symbol.dispose]();
    link.farewell(designation.caller);
    const value = closedMessage(reason, this.#state.reader, this.#owner.terminal);
    // The status waits for the agent to leave: input that meets an ended stream is a write error
    // at the client, which would cost it this very message.
    stream.send({ event: { $case: 'closed', value } });
    this.#lingerTimer = clock.after(config.lingerMs, () => stream.endOrReset());
    this.#owner.onPossessorClosed();
  }

  /** Inputs in order, one after another: a write may be answered by the next before it returns. */
  #stepLine(input: LineInput): void {
    this.#lineInputs.push(input);
    if (this.#isLineStepping || this.isClosed) {
      return;
    }
    this.#isLineStepping = true;
    for (let next = this.#lineInputs.shift(); next !== undefined; next = this.#lineInputs.shift()) {
      const { state, effects } = stepLine(this.#line, next, this.#parts.config);
      this.#line = state;
      for (const effect of effects) {
        this.#performLine(effect);
      }
    }
    this.#isLineStepping = false;
  }

  #performLine(effect: LineEffect): void {
    const { stream, clock, config } = this.#parts;
    switch (effect.kind) {
      case 'ask':
        return this.#askInput(effect.question);
      case 'write':
        return this.#stepLine({ kind: 'wrote', bytes: this.#owner.terminal.write(effect.payload) });
      case 'ack':
        return stream.send({ event: { $case: 'inputAck', value: { nextSeq: effect.nextSeq } } });
      case 'refuse':
        return this.#refuse(effect.refusal, 0n);
      case 'block-began':
        this.#blockTimer = clock.after(config.inputBlockMs, () =>
          this.#stepLine({ kind: 'block-spent' }),
        );
        return;
      case 'block-ended':
        return this.#blockTimer?.[Symbol.dispose]();
      case 'pause':
        return stream.pause();
      case 'resume':
        return stream.resume();
    }
  }

  /** Never after the farewell of the close: a question in nobody's name costs this node its stream. */
  #askInput(question: number): void {
    const { link, designation } = this.#parts;
    if (this.isClosed) {
      return;
    }
    link.ask(
      { ...designation, operation: 'AGENT_INPUT', presentation: 0n, replace: false },
      (answer) => this.#stepLine({ kind: 'answered', question, answer: this.#compared(answer) }),
      () =>
        this.#stepLine({
          kind: 'answered',
          question,
          answer: { kind: 'refused', refusal: { reason: 'AUTHORITY_UNREACHABLE', facts: {} } },
        }),
    );
  }

  /** The last look before the terminal is touched. */
  #compared(answer: Outcome<Grant>): Outcome<Grant> {
    return answer.kind === 'granted' && !this.#owner.admits(answer.value)
      ? refused('CARRIER_ATTACHED_ELSEWHERE')
      : answer;
  }

  #hearResize(request: bigint, message: Parameters<typeof toGeometry>[0]): void {
    const geometry = toGeometry(message);
    if (geometry.kind === 'refused') {
      return this.#refuse(geometry.refusal, request);
    }
    this.#resizing = { request, geometry: geometry.value };
    if (!this.#isAskingResize) {
      this.#askResize();
    }
  }

  #askResize(): void {
    const { link, designation } = this.#parts;
    const asked = this.#resizing;
    if (asked === undefined) {
      return;
    }
    this.#isAskingResize = true;
    link.ask(
      { ...designation, operation: 'AGENT_RESIZE', presentation: 0n, replace: false },
      (answer) => this.#hearResizeAnswer(asked, this.#compared(answer)),
      () => this.#hearResizeAnswer(asked, refused('AUTHORITY_UNREACHABLE')),
    );
  }

  /** A newer size has taken the older one's place, and is asked for in its own right. */
  #hearResizeAnswer(asked: Resizing, answer: Outcome<Grant>): void {
    this.#isAskingResize = false;
    if (this.isClosed) {
      return;
    }
    const isNewest = this.#resizing === asked;
    this.#resizing = isNewest ? undefined : this.#resizing;
    if (answer.kind === 'refused') {
      this.#refuse(answer.refusal, asked.request);
    } else if (isNewest) {
      this.#resize(asked);
    }
    this.#askResize();
  }

  #resize({ request, geometry }: Resizing): void {
    const applied = this.#owner.terminal.resize(geometry);
    if (applied !== undefined) {
      return this.#owner.onResized(applied);
    }
    this.#refuse({ reason: 'CARRIER_NOT_ATTACHED', facts: {} }, request);
  }

  #refuse(refusal: Refusal, request: bigint): void {
    const value = toRefused(refusal, request);
    this.#parts.stream.send({ event: { $case: 'refused', value } });
  }
}
