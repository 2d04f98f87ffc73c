/**
 * The one resolve stream of this data instance to authority.
 *
 *   away ──(connected, inventory sent)──► reconciling ──(Reconciled)──► up ──(stream over)──► away …
 *
 * While it is not up every question is refused AUTHORITY_UNREACHABLE at once, and what was asked and
 * not answered is told that it is lost: nothing is remembered across a break.
 */
import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { Logger } from '#chassis/logger.js';
import { fromRefused } from '#chassis/refusal-status.js';
import {
  type Answer,
  type AuthorityServiceClient,
  type Fence,
  FenceScope,
  Grant as GrantMessage,
  Operation,
  type Question as QuestionMessage,
  type ResolveRequest,
  type ResolveResponse,
} from '#gen/wheelhouse/authority/v1/authority.js';
import type { Refused } from '#gen/wheelhouse/refusal/v1/refusal.js';
import type { Clock } from '#kernel/clock.js';
import { granted, type Outcome, refused } from '#kernel/outcome.js';
import { type AttachmentRef, epoch, generation, ref, type WorkerRef } from '#kernel/refs.js';
import { closeReasonName } from '#kernel/refusal.js';
import type { Grant } from '../domain/basis.js';
import type {
  AuthorityLink,
  Caller,
  Designation,
  LinkEvents,
  Question,
  Reservation,
  Verdict,
} from '../domain/link.js';
import { IntroducedCallers } from './introduced-callers.js';
import { PendingQuestions } from './pending-questions.js';
import { PendingRequests } from './pending-requests.js';

export interface LinkOptions {
  readonly client: AuthorityServiceClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly dataIncarnation: string;
  /** Where clients reach this node. */
  readonly endpoint: () => string;
  readonly reconnectMs: number;
  readonly batchQuestionsMax: number;
  readonly callersMax: number;
}

type Reply = ResolveResponse['message'];
type Stream = ClientDuplexStream<ResolveRequest, ResolveResponse>;
type Told = NonNullable<ResolveRequest['message']>;

const unreachable = refused('AUTHORITY_UNREACHABLE');

export class ResolveStream implements AuthorityLink {
  readonly #options: LinkOptions;
  readonly #events: LinkEvents;
  #stream: Stream | undefined;
  #isUp = false;
  #isDraining = false;
  #world = '';
  /** Introduced again on every new stream. */
  readonly #callers: IntroducedCallers;
  /** How many streams there have been: a grant of an earlier one is worth nothing. */
  #ordinal = 0;
  /** Callers that left while questions wait to be sent, which may be theirs. */
  #leaving: Caller[] = [];
  #lastPresentation = 0n;
  readonly #questions: PendingQuestions;
  readonly #requests = new PendingRequests<Reply>();
  #isFlushDue = false;
  /** Highest fence heard of each worker: one entry a worker at most, emptied with the world. */
  readonly #fenced = new Map<WorkerRef, bigint>();

  constructor(options: LinkOptions, events: LinkEvents) {
    this.#options = options;
    this.#events = events;
    this.#questions = new PendingQuestions(options.batchQuestionsMax);
    this.#callers = new IntroducedCallers(options.callersMax);
  }

  /** Connects, and connects again whenever the stream ends. */
  open(): void {
    const stream = this.#options.client.resolve();
    this.#stream = stream;
    this.#ordinal += 1;
    stream.on('data', (response: ResolveResponse) => this.#receive(stream, response));
    stream.on('error', () => this.#over(stream));
    stream.on('end', () => this.#over(stream));
    const inventory = {
      dataIncarnation: this.#options.dataIncarnation,
      endpoint: this.#options.endpoint(),
      carried: this.#events.carried().map((carried) => ({ ...carried })),
    };
    this.#tell({ $case: 'inventory', value: inventory });
    for (const { caller, certificate } of this.#callers.all()) {
      this.#introduceOn(caller, certificate);
    }
  }

  /**
   * Still tells what ends, and does not connect again: by then another life of this node may serve, and
   * this one's inventory would end what that one carries.
   */
  drain(): void {
    this.#isDraining = true;
  }

  close(): void {
    this.#isDraining = true;
    this.#stream?.cancel();
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  introduce(certificate: Uint8Array): Outcome<Caller> {
    return this.#callers.enter(certificate, (caller) => this.#introduceOn(caller, certificate));
  }

  farewell(caller: Caller): void {
    this.#callers.leave(caller, () => {
      this.#leaving.push(caller);
      if (!this.#isFlushDue) {
        this.#tellFarewells();
      }
    });
  }

  nextPresentation(): bigint {
    this.#lastPresentation += 1n;
    return this.#lastPresentation;
  }

  presentationEnded(presentation: bigint): void {
    if (this.#isUp) {
      this.#tell({ $case: 'presentationEnded', value: { presentation } });
    }
  }

  ask(question: Question, onAnswer: (answer: Outcome<Grant>) => void, onLost: () => void): void {
    if (!this.#isUp) {
      process.nextTick(onLost);
      return;
    }
    this.#questions.ask({ question, onAnswer, onLost });
    if (!this.#isFlushDue) {
      this.#isFlushDue = true;
      process.nextTick(() => this.#flush());
    }
  }

  async reserve(designation: Designation): Promise<Outcome<Reservation>> {
    const { caller, workerRef, expectedGeneration } = designation;
    const message = await this.#request((request) => ({
      $case: 'reserve',
      value: { request, caller, workerRef, expectedWorkerGeneration: expectedGeneration },
    }));
    if (message?.$case !== 'admission') {
      return unreachable;
    }
    const { verdict, authorityEpoch } = message.value;
    if (verdict?.$case === 'reservation') {
      const chain = verdict.value.grant ?? GrantMessage.create();
      const grant = this.#toGrant(chain, workerRef, authorityEpoch);
      return granted({ grant, workspace: verdict.value.workspace });
    }
    return verdict?.$case === 'refused' ? toOutcome(verdict.value) : unreachable;
  }

  async activate(attachmentRef: AttachmentRef): Promise<Outcome<void>> {
    const of = (request: bigint): Told => ({
      $case: 'activate',
      value: { request, attachmentRef },
    });
    return toRecorded(await this.#request(of));
  }

  async release(attachmentRef: AttachmentRef): Promise<Outcome<void>> {
    const of = (request: bigint): Told => ({ $case: 'release', value: { request, attachmentRef } });
    return toRecorded(await this.#request(of));
  }

  isFenced({ workerRef, stream, authorityEpoch }: Grant): boolean {
    return stream !== this.#ordinal || authorityEpoch < (this.#fenced.get(workerRef) ?? 0n);
  }

  #toGrant(chain: GrantMessage, workerRef: WorkerRef, authorityEpoch: bigint): Grant {
    return {
      workerRef,
      carrierRef: ref(chain.carrierRef),
      workerGeneration: generation(chain.workerGeneration),
      attachmentRef: ref(chain.attachmentRef),
      attachmentEpoch: epoch(chain.attachmentEpoch),
      carrierEpoch: epoch(chain.carrierEpoch),
      authorityEpoch,
      stream: this.#ordinal,
    };
  }

  #introduceOn(caller: Caller, certificate: Uint8Array): void {
    const value = { caller, certificate: Buffer.from(certificate) };
    this.#tell({ $case: 'introduction', value });
  }

  #tell(message: Told): void {
    this.#stream?.write({ message });
  }

  #flush(): void {
    this.#isFlushDue = false;
    let taken = this.#isUp ? this.#questions.take() : undefined;
    for (; taken !== undefined; taken = this.#questions.take()) {
      const { batch, questions } = taken;
      this.#tell({ $case: 'batch', value: { batch, questions: questions.map(toMessage) } });
    }
    this.#tellFarewells();
  }

  /** Never before a question in a caller's name: authority would end the stream over it. */
  #tellFarewells(): void {
    const leaving = this.#leaving;
    this.#leaving = [];
    for (const caller of leaving) {
      this.#tell({ $case: 'farewell', value: { caller } });
    }
  }

  async #request(of: (request: bigint) => Told): Promise<Reply | undefined> {
    return this.#isUp ? await this.#requests.send((request) => this.#tell(of(request))) : undefined;
  }

  #receive(stream: Stream, { message }: ResolveResponse): void {
    if (stream !== this.#stream) {
      return;
    }
    switch (message?.$case) {
      case 'answers':
        return this.#answer(
          message.value.batch,
          message.value.authorityEpoch,
          message.value.answers,
        );
      case 'fence':
        return this.#fence(message.value);
      case 'admission':
      case 'recorded':
        return this.#requests.reply(message.value.request, message);
      case 'reconciled':
        return this.#reconcile(message.value.worldIncarnation, message.value.verdicts);
      case 'reattached':
        return this.#events.onReattached({
          workerRef: ref(message.value.workerRef),
          attachmentRef: ref(message.value.attachmentRef),
          attachmentEpoch: epoch(message.value.attachmentEpoch),
          carrierEpoch: epoch(message.value.carrierEpoch),
        });
      default:
        return;
    }
  }

  #answer(batch: bigint, authorityEpoch: bigint, answers: readonly Answer[]): void {
    this.#questions.answer(batch, (index, { workerRef }) => {
      const verdict = answers[index]?.verdict;
      if (verdict?.$case === 'grant') {
        return granted(this.#toGrant(verdict.value, workerRef, authorityEpoch));
      }
      return verdict === undefined ? unreachable : toOutcome(verdict.value);
    });
  }

  /** Acknowledged when it is in force, on the stream it came by. */
  #fence(fence: Fence): void {
    const stream = this.#stream;
    const workerRef = ref<WorkerRef>(fence.workerRef);
    const heard = this.#fenced.get(workerRef) ?? 0n;
    this.#fenced.set(workerRef, heard > fence.authorityEpoch ? heard : fence.authorityEpoch);
    // A scope of a newer authority's ends everything: to acknowledge less would be a lie.
    const scope = fence.scope === FenceScope.PRESENTATIONS ? 'PRESENTATIONS' : 'POSSESSION';
    const reason = closeReasonName(fence.reason) ?? 'RELEASED';
    void this.#events.onFence({ workerRef, scope, reason }).then(() => {
      if (stream === this.#stream) {
        this.#tell({ $case: 'fenceAck', value: { fence: fence.fence } });
      }
    });
  }

  #reconcile(
    world: string,
    verdicts: readonly { attachmentRef: string; keep: boolean; reason: number }[],
  ): void {
    const isNewWorld = world !== this.#world;
    if (isNewWorld) {
      this.#fenced.clear();
    }
    this.#world = world;
    this.#isUp = true;
    const ruled = verdicts.map(({ attachmentRef, keep, reason }) => ({
      attachmentRef: ref<AttachmentRef>(attachmentRef),
      endReason: keep ? undefined : (closeReasonName(reason) ?? 'RELEASED'),
    }));
    this.#options.logger.info({ terminals: ruled.length }, 'authority answers');
    this.#events.onReconciled(ruled, isNewWorld ? 'WORLD_RESTARTED' : 'AUTHORITY_UNREACHABLE');
    this.#releaseEnded(ruled);
  }

  /** A terminal may end between its inventory and the answer: authority keeps what is gone. */
  #releaseEnded(verdicts: readonly Verdict[]): void {
    const carried = new Set(this.#events.carried().map(({ attachmentRef }) => attachmentRef));
    for (const { attachmentRef, endReason } of verdicts) {
      if (endReason === undefined && !carried.has(attachmentRef)) {
        void this.release(attachmentRef);
      }
    }
  }

  #over(stream: Stream): void {
    if (stream !== this.#stream) {
      return;
    }
    this.#stream = undefined;
    this.#leaving = [];
    const wasUp = this.#isUp;
    this.#isUp = false;
    this.#questions.lose();
    this.#requests.lose();
    if (wasUp) {
      this.#options.logger.warn('authority does not answer');
      this.#events.onLost();
    }
    if (!this.#isDraining) {
      this.#options.clock.after(this.#options.reconnectMs, () => {
        if (!this.#isDraining) {
          this.open();
        }
      });
    }
  }
}

function toMessage(question: Question): QuestionMessage {
  return {
    operation: Operation[question.operation],
    caller: question.caller,
    workerRef: question.workerRef,
    expectedWorkerGeneration: question.expectedGeneration,
    presentation: question.presentation,
    replace: question.replace,
  };
}

/** Durable, or why it is not. */
function toRecorded(message: Reply | undefined): Outcome<void> {
  if (message?.$case !== 'recorded') {
    return unreachable;
  }
  const { refused: refusal } = message.value;
  return refusal === undefined ? granted(undefined) : toOutcome(refusal);
}

/** A name that this build does not know is still a no. */
function toOutcome(message: Refused): Outcome<never> {
  const refusal = fromRefused(message);
  return refusal === undefined ? unreachable : { kind: 'refused', refusal };
}
