/**
 * Possess: an agent's program in a terminal, for as long as the stream lives.
 *
 * reserve (durable) → spawn → activate (durable) → Opened. Whatever fails in between gives the
 * reservation back. The command and its environment go to the program and nowhere else.
 */
import type { handleBidiStreamingCall } from '@grpc/grpc-js';
import { bidi } from '#chassis/bidi.js';
import type { PossessOpen, PossessRequest, PossessResponse } from '#gen/wheelhouse/data/v1/data.js';
import { granted, type Outcome, refused } from '#kernel/outcome.js';
import type { Refusal } from '#kernel/refusal.js';
import type { OutputFrameMessage } from '../adapters/output-frame.js';
import { toProgram } from '../adapters/program.js';
import { SpawnFault } from '../adapters/terminal-host.js';
import { Carrier } from '../carrier.js';
import { closeReasonOf } from '../domain/close-reason.js';
import type { Designation, Reservation } from '../domain/link.js';
import type { Geometry, TerminalSpec } from '../domain/terminal.js';
import type { Node } from '../node.js';
import type { Turn } from '../openings.js';
import type { PossessStream } from './possessor.js';
import { designate, toGeometry, toWindowBytes } from './wire.js';

type Response = PossessResponse | OutputFrameMessage;

export function possess(node: Node): handleBidiStreamingCall<PossessRequest, Response> {
  return bidi((stream, { certificate }) => new PossessCall(node, stream, certificate).attach());
}

/** One call from its first message on. */
class PossessCall {
  readonly #node: Node;
  readonly #stream: PossessStream;
  readonly #certificate: Uint8Array;
  #hasAsked = false;
  #turn: Turn | undefined;
  #carrier: Carrier | undefined;

  constructor(node: Node, stream: PossessStream, certificate: Uint8Array) {
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
    this.#carrier?.abandon();
    this.#turn?.giveUp();
  }

  #hear(message: PossessRequest): void {
    const { operation } = message;
    if (operation?.$case === 'open' && !this.#hasAsked) {
      this.#hasAsked = true;
      return this.#open(operation.value);
    }
    if (operation === undefined) {
      return; // an operation of a newer client: ignored
    }
    if (this.#carrier === undefined) {
      const rule = 'the first message, once, and the rest only after Opened';
      return this.#stream.refuse({ reason: 'REQUEST_INVALID', facts: { field: 'open', rule } });
    }
    this.#carrier.possessor.hear(message);
  }

  /** An agent that says it is done lets its terminal go. */
  #leave(): void {
    if (this.#carrier === undefined) {
      this.#stream.end();
    } else {
      this.#carrier.leave();
    }
  }

  #open(open: PossessOpen): void {
    const { link, openings } = this.#node;
    const geometry = toGeometry(open.geometry);
    if (geometry.kind === 'refused') {
      return this.#stream.refuse(geometry.refusal);
    }
    const designated = designate(open, () => link.introduce(this.#certificate));
    if (designated.kind === 'refused') {
      return this.#stream.refuse(designated.refusal);
    }
    const designation = designated.value;
    this.#turn = openings.enter(designation.caller, {
      ask: (done) => void this.#ask(open, designation, geometry.value).finally(done),
      giveUp: () => link.farewell(designation.caller),
    });
  }

  async #ask(open: PossessOpen, designation: Designation, geometry: Geometry): Promise<void> {
    const { link } = this.#node;
    const admitted = this.#admit();
    const reserved = admitted.kind === 'refused' ? admitted : await link.reserve(designation);
    if (reserved.kind === 'refused') {
      return this.#refuse(designation, reserved.refusal);
    }
    const { grant, workspace } = reserved.value;
    const program = await toProgram(open, workspace, geometry, this.#node.config);
    const started =
      program.kind === 'refused'
        ? program
        : this.#start(open, designation, reserved.value, program.value);
    if (started.kind === 'refused') {
      await link.release(grant.attachmentRef);
      return this.#refuse(designation, started.refusal);
    }
    await this.#begin(started.value);
  }

  /** Asked before anything is reserved, and again where it counts: others may have been started since. */
  #admit(): Outcome<void> {
    const { carriers, config } = this.#node;
    return carriers.count < config.terminalsMax
      ? granted(undefined)
      : refused('TERMINALS_EXHAUSTED', { terminalsMax: String(config.terminalsMax) });
  }

  /** Compared with what was fenced since the reservation, in the same turn in which it is started. */
  #start(
    open: PossessOpen,
    designation: Designation,
    { grant }: Reservation,
    spec: TerminalSpec,
  ): Outcome<Carrier> {
    const { link, clock, config, carriers, host } = this.#node;
    if (link.isFenced(grant) || this.#stream.isOver) {
      return refused('WORKER_CLOSED', { worker: designation.workerRef });
    }
    const admitted = this.#admit();
    if (admitted.kind === 'refused') {
      return admitted;
    }
    if (carriers.attachedAt(designation.workerRef) !== undefined) {
      return refused('CARRIER_ALREADY_ATTACHED');
    }
    const { windowBytesDefault, windowBytesMax } = config;
    const windowBytes = toWindowBytes(open.windowBytes, windowBytesDefault, windowBytesMax);
    const possessor = {
      stream: this.#stream,
      link,
      clock,
      config,
      designation,
      windowBytes,
      isHeadless: open.headless,
    };
    try {
      const carrier = new Carrier({
        basis: grant,
        link,
        clock,
        config,
        possessor,
        geometry: spec.geometry,
        spawn: (events) => host.spawn(spec, events),
        onDetached: (gone) => carriers.detach(gone),
        onStatus: () => carriers.statusChanged(),
        onHungUp: (ended, fault) => carriers.hungUp(ended, fault),
        onGone: (gone) => carriers.remove(gone),
      });
      carriers.add(carrier);
      this.#carrier = carrier;
      return granted(carrier);
    } catch (error) {
      if (error instanceof SpawnFault) {
        return refused('SPAWN_FAILED', { cause: 'refused-by-system', file: open.argv[0] ?? '' });
      }
      throw error;
    }
  }

  async #begin(carrier: Carrier): Promise<void> {
    const activated = await this.#node.link.activate(carrier.basis.attachmentRef);
    if (activated.kind === 'refused') {
      return carrier.end(closeReasonOf(activated.refusal.reason));
    }
    if (!carrier.possessor.isClosed) {
      carrier.begin();
    }
  }

  #refuse(designation: Designation, refusal: Refusal): void {
    this.#node.link.farewell(designation.caller);
    this.#stream.refuse(refusal);
  }
}
