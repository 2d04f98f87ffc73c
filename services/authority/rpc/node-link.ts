/**
 * The resolve stream of one data node: its inventory first, then questions, admissions and fences.
 *
 *   opened ──inventory──► reconciling ──facts durable──► serving ──over, superseded, misused──► gone
 *
 * Answers and fences leave through this one stream in the order of their epochs. A batch is answered in
 * the handler that received it. Nothing is read while reconciling: what the node sends meanwhile waits.
 */
import { toCloseReason, toRefused } from '#chassis/refusal-status.js';
import type { ServerStream } from '#chassis/server-stream.js';
import {
  type Admission,
  type Batch,
  FenceScope as FenceScopeMessage,
  type Introduction,
  type Inventory,
  type Reserve,
  type ResolveRequest,
  type ResolveResponse,
} from '#gen/wheelhouse/authority/v1/authority.js';
import { bug } from '#kernel/bug.js';
import type { Clock } from '#kernel/clock.js';
import type { FreshNames } from '#kernel/fresh-names.js';
import type { Outcome } from '#kernel/outcome.js';
import { type AttachmentRef, ref, type WorkerRef } from '#kernel/refs.js';
import type { CloseReasonName, Refusal } from '#kernel/refusal.js';
import type { Deciding, Settled } from '../domain/deciding.js';
import type { Effect, FenceScope } from '../domain/effect.js';
import { type Asker, withoutPresentations } from '../domain/presence.js';
import { answerBatch } from './batch.js';
import { encodeAnswers, type OutgoingResponse } from './encoded-answers.js';
import type { Verify } from './room.js';
import { fromGrant, toAsker, toCarried, toDesignation } from './wire.js';

interface NodeLinkLimits {
  readonly batchQuestionsMax: number;
  readonly callersPerNodeMax: number;
  readonly nodeInventoryMs: number;
  readonly nodeBacklogMax: number;
}

export interface NodeLinkParts {
  readonly authority: Deciding;
  readonly clock: Clock;
  readonly names: FreshNames;
  readonly verify: Verify;
  readonly limits: NodeLinkLimits;
  /** The stream serves; called before anything is sent on it. */
  readonly onServing: (link: NodeLink) => void;
  /** The stream serves no more, and no other has taken its place. At most once, after `onServing`. */
  readonly onGone: (link: NodeLink) => void;
  /** The connection is over. Once, whatever came before. */
  readonly onOver: (link: NodeLink) => void;
}

/** What ends on a node, from which state on. */
export interface FenceOrder {
  readonly workerRef: WorkerRef;
  readonly scope: FenceScope;
  readonly reason: CloseReasonName;
}

export type NodeStream = ServerStream<ResolveRequest, OutgoingResponse>;

type Told = NonNullable<ResolveResponse['message']>;
type Phase = 'opened' | 'reconciling' | 'serving' | 'gone';

/** Longest name of a life and longest endpoint that an inventory may give, characters. */
const textMax = 256;

export class NodeLink {
  readonly node: string;
  readonly #stream: NodeStream;
  readonly #parts: NodeLinkParts;
  readonly #callers = new Map<number, Asker>();
  /** Fences somebody waits for: at most two for each closing worker. */
  readonly #awaited = new Map<bigint, () => void>();
  /** Answers and fences handed over that HTTP/2 has not taken. */
  #untakenCount = 0;
  #lastFence = 0n;
  #lastBatch = 0n;
  #phase: Phase = 'opened';
  /** Runs until the inventory is here. */
  #inventoryDue: Disposable | undefined;

  constructor(stream: NodeStream, node: string, parts: NodeLinkParts) {
    this.#stream = stream;
    this.node = node;
    this.#parts = parts;
  }

  /** Begins to read. To be called in the same turn as the handler. */
  attach(): void {
    const { clock, limits } = this.#parts;
    this.#inventoryDue = clock.after(limits.nodeInventoryMs, () =>
      this.#misused('inventory', `within ${limits.nodeInventoryMs} ms`),
    );
    this.#stream.attach({
      onMessage: (request) => this.#receive(request),
      onHalfClose: () => this.#stream.end(),
      onGone: () => {
        this.#leave();
        this.#parts.onOver(this);
      },
    });
  }

  /** Sends a fence of the state of that epoch; `onAck` when the node says it is in force. */
  sendFence({ workerRef, scope, reason }: FenceOrder, epoch: bigint, onAck?: () => void): void {
    this.#lastFence += 1n;
    const fence = this.#lastFence;
    if (onAck !== undefined) {
      this.#awaited.set(fence, onAck);
    }
    const value = {
      fence,
      workerRef,
      authorityEpoch: epoch,
      scope: FenceScopeMessage[scope],
      reason: toCloseReason(reason),
    };
    this.#send({ $case: 'fence', value });
  }

  sendReconciled({ verdicts }: Extract<Effect, { kind: 'tell-reconciled' }>, epoch: bigint): void {
    const { world } = this.#parts.authority.state;
    const value = {
      worldIncarnation: world.worldIncarnation ?? '',
      worldGeneration: world.worldGeneration,
      authorityEpoch: epoch,
      verdicts: verdicts.map(({ attachmentRef, endReason }) => ({
        attachmentRef,
        keep: endReason === undefined,
        reason: endReason === undefined ? 0 : toCloseReason(endReason),
      })),
    } as const;
    this.#send({ $case: 'reconciled', value });
    this.#stream.resume();
  }

  sendReattached(moved: Extract<Effect, { kind: 'tell-reattached' }>, epoch: bigint): void {
    const { workerRef, attachmentRef, attachmentEpoch, carrierEpoch } = moved;
    const authorityEpoch = epoch;
    const value = { workerRef, attachmentRef, attachmentEpoch, carrierEpoch, authorityEpoch };
    this.#send({ $case: 'reattached', value });
  }

  /** Another stream of this node serves: this one ends, and what hung on it is the other's. */
  supersede(): void {
    this.#phase = 'gone';
    this.#stream.end();
  }

  /** Cuts the stream at once, whatever is still queued. */
  cut(): void {
    if (!this.#stream.isOver) {
      this.#stream.reset();
    }
    this.#leave();
  }

  /** Ends the stream by name. */
  refuse(refusal: Refusal): void {
    this.#stream.refuse(refusal);
    this.#leave();
  }

  #receive({ message }: ResolveRequest): void {
    if (this.#phase === 'gone') {
      return;
    }
    if (this.#phase !== 'serving') {
      return this.#phase === 'opened' && message?.$case === 'inventory'
        ? this.#reconcile(message.value)
        : this.#misused('message', 'an inventory, once, before anything else');
    }
    switch (message?.$case) {
      case 'batch':
        return this.#answer(message.value);
      case 'introduction':
        return this.#introduce(message.value);
      case 'farewell':
        this.#callers.delete(message.value.caller);
        return;
      case 'reserve':
        return this.#reserve(message.value);
      case 'activate':
        return this.#activate(message.value.request, ref(message.value.attachmentRef));
      case 'release':
        return this.#release(message.value.request, ref(message.value.attachmentRef));
      case 'fenceAck':
        return this.#acknowledge(message.value.fence);
      case 'presentationEnded':
        return this.#presentationEnded(message.value.presentation);
      default:
        return this.#misused('message', 'one of this contract, the inventory only once');
    }
  }

  #reconcile({ dataIncarnation, endpoint, carried }: Inventory): void {
    if (dataIncarnation === '' || dataIncarnation.length > textMax || endpoint.length > textMax) {
      return this.#misused('inventory', `a life and an endpoint of at most ${textMax} characters`);
    }
    this.#phase = 'reconciling';
    this.#inventoryDue?.[Symbol.dispose]();
    this.#stream.pause();
    this.#parts.authority.submit(
      {
        kind: 'reconcile',
        node: this.node,
        dataIncarnation: ref(dataIncarnation),
        endpoint,
        carried: carried.map(toCarried),
      },
      (outcome) => this.#reconciled(outcome),
    );
  }

  #reconciled(outcome: Outcome<Settled>): void {
    if (outcome.kind === 'refused') {
      this.#stream.refuse(outcome.refusal);
      this.#phase = 'gone';
      return;
    }
    const isGone = this.#phase === 'gone';
    this.#phase = 'serving';
    this.#parts.onServing(this);
    if (isGone) {
      this.#leave();
    }
  }

  #answer({ batch, questions }: Batch): void {
    if (batch <= this.#lastBatch) {
      return this.#misused('batch', 'a number that grows');
    }
    this.#lastBatch = batch;
    if (questions.length > this.#parts.limits.batchQuestionsMax) {
      return this.#misused('questions', `at most ${this.#parts.limits.batchQuestionsMax}`);
    }
    const asked = [];
    for (const message of questions) {
      const asker = this.#callers.get(message.caller);
      if (asker === undefined) {
        return this.#misused('caller', 'introduced on this stream');
      }
      asked.push({ message, asker });
    }
    const { authority, clock } = this.#parts;
    const outcomes = answerBatch(authority, this.node, asked, clock.now());
    const response = encodeAnswers(batch, authority.epoch, outcomes);
    this.#handOver(response, Math.max(1, outcomes.length));
  }

  #introduce({ caller, certificate }: Introduction): void {
    const { callersPerNodeMax } = this.#parts.limits;
    if (this.#callers.has(caller) || this.#callers.size >= callersPerNodeMax) {
      return this.#misused('caller', `a free number, at most ${callersPerNodeMax} at a time`);
    }
    const identity = this.#parts.verify(certificate);
    if (identity.kind === 'refused') {
      return this.#misused('certificate', 'issued by this deployment to somebody it names');
    }
    // Kept for the stream's life: the lineage of a living connection does not change when its record is forgotten.
    this.#callers.set(caller, toAsker(this.#parts.authority.state, identity.value));
  }

  #reserve(message: Reserve): void {
    const asker = this.#callers.get(message.caller);
    if (asker === undefined) {
      return this.#misused('caller', 'introduced on this stream');
    }
    const { authority, names } = this.#parts;
    const attachmentRef = ref<AttachmentRef>(names.fresh('at'));
    const designation = toDesignation(message);
    const { node } = this;
    authority.submit({ kind: 'reserve', asker, node, attachmentRef, ...designation }, (outcome) => {
      const admission = toAdmission(message, outcome, authority.epoch);
      if (outcome.kind === 'granted' && this.#phase === 'gone') {
        // Nobody heard that it was admitted, so nobody will start it.
        authority.insist({ kind: 'release', node, attachmentRef });
      }
      this.#send({ $case: 'admission', value: admission });
    });
  }

  /** An end is not refused: the node says it once, and the seat would stay taken until its next inventory. */
  #release(request: bigint, attachmentRef: AttachmentRef): void {
    const { node } = this;
    this.#parts.authority.insist({ kind: 'release', node, attachmentRef }, ({ epoch }) =>
      this.#send({
        $case: 'recorded',
        value: { request, authorityEpoch: epoch, refused: undefined },
      }),
    );
  }

  #activate(request: bigint, attachmentRef: AttachmentRef): void {
    const { authority } = this.#parts;
    authority.submit({ kind: 'activate', node: this.node, attachmentRef }, (outcome) => {
      const value =
        outcome.kind === 'granted'
          ? { request, authorityEpoch: outcome.value.epoch, refused: undefined }
          : {
              request,
              authorityEpoch: authority.epoch,
              refused: toRefused(outcome.refusal, request),
            };
      this.#send({ $case: 'recorded', value });
    });
  }

  #acknowledge(fence: bigint): void {
    const onAck = this.#awaited.get(fence);
    this.#awaited.delete(fence);
    onAck?.();
  }

  #presentationEnded(number: bigint): void {
    const { node } = this;
    this.#parts.authority.apply(({ presence }) => ({
      state: withoutPresentations(presence, (each) => each.node === node && each.number === number),
      effects: [],
    }));
  }

  #send(message: Told): void {
    this.#handOver({ message }, 1);
  }

  #handOver(response: OutgoingResponse, answerCount: number): void {
    if (this.#phase === 'gone') {
      return;
    }
    const { nodeBacklogMax } = this.#parts.limits;
    this.#untakenCount += answerCount;
    if (this.#untakenCount > nodeBacklogMax) {
      // A refusal would queue behind what it takes too little of.
      return this.cut();
    }
    this.#stream.send(response, () => {
      this.#untakenCount -= answerCount;
    });
  }

  #misused(field: string, rule: string): void {
    this.refuse({ reason: 'REQUEST_INVALID', facts: { field, rule } });
  }

  #leave(): void {
    const wasServing = this.#phase === 'serving';
    this.#phase = 'gone';
    this.#inventoryDue?.[Symbol.dispose]();
    this.#awaited.clear();
    if (wasServing) {
      this.#parts.onGone(this);
    }
  }
}

function toAdmission(
  { request, workerRef }: Reserve,
  outcome: Outcome<Settled>,
  epochNow: bigint,
): Admission {
  if (outcome.kind === 'refused') {
    const value = toRefused(outcome.refusal, request);
    return { request, authorityEpoch: epochNow, verdict: { $case: 'refused', value } };
  }
  const { state, epoch } = outcome.value;
  const worker = state.world.workers.get(ref<WorkerRef>(workerRef));
  const occupancy = worker?.occupancy;
  const attachment = occupancy?.attachment;
  if (worker === undefined || occupancy === undefined || attachment === undefined) {
    return bug('an admitted terminal is not in the world');
  }
  const grant = fromGrant({ worker, occupancy, attachment, peerRef: occupancy.peerRef });
  const value = { grant, workspace: worker.workspace };
  return { request, authorityEpoch: epoch, verdict: { $case: 'reservation', value } };
}
