/**
 * The reading side of Present and Possess: exact, in order, or over.
 *
 *   opening ──opened──► open ──(Closed, error, a gap, stop)──► over
 *      └────────────(Closed, error, stop)─────────────────────────▲
 *
 * `over` is final: not one byte is passed on afterwards, whatever the transport still holds.
 * Output is passed on one frame at a time; while the consumer has not taken one, nothing is read.
 */
import { type ClientDuplexStream, type ServiceError, status } from '@grpc/grpc-js';
import { fromRefused } from '#chassis/refusal-status.js';
import type {
  End,
  Geometry,
  GeometryChanged,
  Opened,
  OutputFrame,
  PossessResponse,
} from '#gen/wheelhouse/data/v1/data.js';
import { type CloseReasonName, kebab, type ReasonName, type Refusal } from '#kernel/refusal.js';
import { type AckLedger, acked, isAckDue, openLedger, received, taken } from './ack-ledger.js';
import { type CallError, callError, RefusedError, UnreachableError } from './call-errors.js';
import { type ClosedEnd, endOf, exitOf, type StreamEnd } from './stream-end.js';

type Event = NonNullable<PossessResponse['event']>;
type Response = { event?: Event | undefined };

export interface OutputConsumer {
  /**
   * Takes the next bytes. They are a view of a message: copy what outlives the call and its promise.
   * A promise says when they are taken; nothing more is passed on before, and no acknowledgement sent.
   */
  take(bytes: Buffer, seq: bigint): void | Promise<void>;
  /** The terminal has another size from a position of the output on. */
  resized?(geometry: Geometry, outSeq: bigint): void;
}

/** What the two kinds of stream do differently. */
export interface StreamSide<Request> {
  readonly service: string;
  ackMessage(nextSeq: bigint): Request;
  inputAcked?(nextSeq: bigint): void;
  /** One operation was refused; `undefined` when its name is unknown to this build. */
  refused?(request: bigint, refusal: Refusal | undefined): void;
}

/** Reasons to close a stream that are also reasons not to begin one: what the next opening would be told. */
const refusalBy: Readonly<Partial<Record<CloseReasonName, ReasonName>>> = {
  WORKER_CLOSED: 'WORKER_CLOSED',
  GENERATION_ADVANCED: 'WORKER_GENERATION_ADVANCED',
  CONTROL_UNBOUND: 'CONTROL_CHANNEL_NOT_BOUND',
  AUTHORITY_UNREACHABLE: 'AUTHORITY_UNREACHABLE',
  DRAINING: 'SERVICE_DRAINING',
};

/** An opening that has not been answered after this long will not be. */
const OPENING_MS = 15_000;
/** How long a leaving reader waits for the sender's last positions. */
const FAREWELL_MS = 1_000;

export class OutputStream<Request> {
  /** Rejects with a `RefusedError` or an `UnreachableError` when the stream does not begin. */
  readonly opened: Promise<Opened>;
  /** Never rejects. */
  readonly ended: Promise<StreamEnd>;
  readonly #call: ClientDuplexStream<Request, Response>;
  readonly #side: StreamSide<Request>;
  readonly #consumer: OutputConsumer;
  readonly #opening = deferred<Opened>();
  readonly #ending = deferred<StreamEnd>();
  #ledger: AckLedger = openLedger(0n, 0);
  #end: End | undefined;
  #isOpen = false;
  #isLeaving = false;
  /** Nothing more is sent: a write after the end would be an error, and cost the last message. */
  #hasSentAll = false;
  #isOver = false;

  constructor(
    call: ClientDuplexStream<Request, Response>,
    side: StreamSide<Request>,
    consumer: OutputConsumer,
  ) {
    this.#call = call;
    this.#side = side;
    this.#consumer = consumer;
    this.opened = this.#opening.promise;
    this.ended = this.#ending.promise;
    this.#attach();
  }

  /** Next byte the consumer has not taken. */
  get takenSeq(): bigint {
    return this.#ledger.takenSeq;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  send(message: Request): void {
    if (!this.#isOver && !this.#hasSentAll) {
      this.#call.write(message);
    }
  }

  /** Leaves: passes nothing more on, tells what was taken, waits a moment for the sender's positions. */
  async leave(): Promise<StreamEnd> {
    if (!this.#isOver && !this.#isLeaving) {
      this.#isLeaving = true;
      this.#acknowledge();
      this.halfClose();
      // Whatever still waits is read to its end and dropped, so that the last message is reached.
      this.#call.resume();
      const overdue = setTimeout(() => this.#finish(this.#detached(undefined)), FAREWELL_MS);
      void this.ended.then(() => clearTimeout(overdue));
    }
    return await this.ended;
  }

  /** Ends the sending side and goes on reading to the last message. */
  halfClose(): void {
    if (!this.#isOver) {
      this.#hasSentAll = true;
      this.#call.end();
    }
  }

  /** Cuts the stream. */
  abort(cause: Error): void {
    this.#lose(cause);
  }

  #attach(): void {
    const { service } = this.#side;
    const overdue = setTimeout(() => {
      this.#lose(new UnreachableError(service, 'the stream did not begin in time'));
    }, OPENING_MS);
    const clear = (): void => clearTimeout(overdue);
    this.opened.then(clear, clear);
    this.#call.on('error', (error: ServiceError) => this.#fail(error));
    this.#call.on('end', () => this.#lose(new UnreachableError(service, 'the stream just ended')));
    this.#call.on('data', (message: Response) => {
      if (!this.#isOver && message.event !== undefined) {
        this.#receive(message.event);
      }
    });
  }

  #receive(event: Event): void {
    switch (event.$case) {
      case 'opened':
        this.#open(event.value);
        break;
      case 'output':
        this.#pass(event.value);
        break;
      case 'geometry':
        this.#resize(event.value);
        break;
      case 'inputAck':
        this.#side.inputAcked?.(event.value.nextSeq);
        break;
      case 'refused':
        this.#side.refused?.(event.value.request, fromRefused(event.value));
        break;
      case 'end':
        this.#end = event.value;
        this.#acknowledge();
        break;
      case 'closed':
        this.#close(event);
        break;
    }
  }

  #open(opened: Opened): void {
    if (this.#isOpen) {
      this.#violated('it began twice');
      return;
    }
    this.#isOpen = true;
    this.#ledger = openLedger(opened.outSeq, opened.windowBytes);
    this.#opening.resolve(opened);
  }

  #pass(frame: OutputFrame): void {
    const ledger = received(this.#ledger, frame.seq, frame.payload.length);
    if (ledger === undefined || !this.#isOpen) {
      this.#violated(`a frame at ${frame.seq} where ${this.#ledger.receivedSeq} was due`);
      return;
    }
    if (this.#isLeaving) {
      // Received after leaving: counted, so that a gap is still seen, and dropped.
      this.#ledger = { ...ledger, takenSeq: this.#ledger.takenSeq };
      return;
    }
    this.#ledger = ledger;
    const taking = this.#consumer.take(frame.payload, frame.seq);
    if (taking === undefined) {
      this.#took(frame.payload.length);
      return;
    }
    this.#call.pause();
    void taking.then(
      () => {
        this.#took(frame.payload.length);
        this.#call.resume();
      },
      (cause: Error) => this.#lose(cause),
    );
  }

  #took(bytes: number): void {
    if (this.#isLeaving) {
      return;
    }
    this.#ledger = taken(this.#ledger);
    if (isAckDue(this.#ledger, bytes)) {
      this.#acknowledge();
    }
  }

  #acknowledge(): void {
    if (this.#ledger.takenSeq > this.#ledger.ackedSeq) {
      this.send(this.#side.ackMessage(this.#ledger.takenSeq));
      this.#ledger = acked(this.#ledger);
    }
  }

  #resize({ geometry, outSeq }: GeometryChanged): void {
    if (geometry !== undefined && !this.#isLeaving) {
      this.#consumer.resized?.(geometry, outSeq);
    }
  }

  #close(event: Extract<Event, { $case: 'closed' }>): void {
    const end = endOf(event.value);
    if (end === undefined) {
      this.#violated(`it closed for a reason unknown here (${event.value.reason})`);
      return;
    }
    // What was acknowledged may still have been on its way when the sender closed.
    const { ackedSeq } = this.#ledger;
    const closed = { ...end, ackedSeq: end.ackedSeq > ackedSeq ? end.ackedSeq : ackedSeq };
    this.#finish(this.#isLeaving ? this.#detached(closed) : closed, this.#closedAtOnce(end.reason));
  }

  /** What an opening is told that was closed before it began: a ruling, where the reason is one's name. */
  #closedAtOnce(reason: CloseReasonName): CallError {
    const named = refusalBy[reason];
    return named === undefined
      ? new UnreachableError(this.#side.service, `it closed at once: ${kebab(reason)}`)
      : new RefusedError({ reason: named, facts: {} });
  }

  /** The status that ends a call that did not end well. */
  #fail(error: ServiceError): void {
    const isOurs = this.#isLeaving && error.code === status.CANCELLED;
    this.#lose(isOurs ? new Error('left') : callError(error, this.#side.service));
  }

  #violated(what: string): void {
    this.#lose(new UnreachableError(this.#side.service, `the stream broke its rules: ${what}`));
  }

  /** Over without a reason. After END every byte is here all the same, and the program's end is known. */
  #lose(cause: Error): void {
    if (this.#isLeaving) {
      this.#finish(this.#detached(undefined));
      return;
    }
    const end = this.#end;
    const { takenSeq } = this.#ledger;
    if (end === undefined || takenSeq !== end.outSeq) {
      this.#finish({ kind: 'lost', takenSeq, cause }, cause);
      return;
    }
    this.#finish({
      kind: 'closed',
      reason: 'ENDED',
      ackedSeq: takenSeq,
      sentSeq: end.outSeq,
      producedSeq: end.outSeq,
      exit: exitOf(end.exit),
    });
  }

  #detached(closed: ClosedEnd | undefined): StreamEnd {
    return { kind: 'detached', takenSeq: this.#ledger.takenSeq, sender: closed };
  }

  #finish(end: StreamEnd, cause?: Error): void {
    if (this.#isOver) {
      return;
    }
    this.#isOver = true;
    this.#opening.reject(cause ?? new UnreachableError(this.#side.service, 'closed at once'));
    this.#ending.resolve(end);
    // A no-op once the status has come; before, it frees what the transport still holds.
    this.#call.cancel();
    this.#call.resume();
  }
}

interface Deferred<Value> {
  readonly promise: Promise<Value>;
  resolve(value: Value): void;
  reject(cause: Error): void;
}

/** Whoever waits sees a rejection; when nobody does, it is no unhandled one. */
function deferred<Value>(): Deferred<Value> {
  let resolve: (value: Value) => void = () => undefined;
  let reject: (cause: Error) => void = () => undefined;
  const promise = new Promise<Value>((onValue, onCause) => {
    resolve = onValue;
    reject = onCause;
  });
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}
