/**
 * Answers as bytes, with the encoded form of each grant kept beside the worker it was read from.
 *
 * Only the encoding is kept, never the decision: every question is resolved anew, and a grant's bytes
 * are found by the immutable worker that the chain led to. Encoding was over half of a batch's cost.
 */
import {
  type Answer,
  Answers,
  AuthorityServiceService,
  ResolveResponse,
} from '#gen/wheelhouse/authority/v1/authority.js';
import type { Outcome } from '#kernel/outcome.js';
import type { PeerRef } from '#kernel/refs.js';
import type { Grant } from '../domain/resolve.js';
import type { Worker } from '../domain/world.js';
import { fromOutcome } from './wire.js';

/** A response in its wire form. */
export class EncodedResponse {
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }
}

/** What a resolve stream may be given to send. */
export type OutgoingResponse = ResolveResponse | EncodedResponse;

/** The RPC's definition with a serializer that lets encoded responses through. */
export const resolveDefinition = {
  ...AuthorityServiceService.resolve,
  responseSerialize: (response: OutgoingResponse): Buffer =>
    response instanceof EncodedResponse
      ? response.bytes
      : Buffer.from(ResolveResponse.encode(response).finish()),
};

/** The message that answers a batch. The same bytes as the generated encoder's. */
export function encodeAnswers(
  batch: bigint,
  authorityEpoch: bigint,
  outcomes: readonly Outcome<Grant>[],
): EncodedResponse {
  const parts = outcomes.map(encodedAnswer);
  const head = Answers.encode({ batch, authorityEpoch, answers: [] }).finish();
  const length = parts.reduce((total, part) => total + part.length, head.length);
  return new EncodedResponse(Buffer.concat([envelope(length), head, ...parts]));
}

/** The other party to a grant than the occupant is the one operator, so two forms a worker are enough. */
interface Kept {
  readonly peerRef: PeerRef;
  readonly bytes: Uint8Array;
}

const keptForOccupant = new WeakMap<Worker, Kept>();
const keptForOperator = new WeakMap<Worker, Kept>();

/** One answer as a field of `Answers`. */
function encodedAnswer(outcome: Outcome<Grant>): Uint8Array {
  if (outcome.kind === 'refused') {
    return encode(fromOutcome(outcome));
  }
  const { worker, occupancy, peerRef } = outcome.value;
  const kept = peerRef === occupancy.peerRef ? keptForOccupant : keptForOperator;
  const found = kept.get(worker);
  if (found?.peerRef === peerRef) {
    return found.bytes;
  }
  const bytes = encode(fromOutcome(outcome));
  kept.set(worker, { peerRef, bytes });
  return bytes;
}

/** Fields of zero are not written, so a message of one answer is that answer's field and nothing else. */
function encode(answer: Answer): Uint8Array {
  return Answers.encode({ batch: 0n, authorityEpoch: 0n, answers: [answer] }).finish();
}

/** Field 2 of `ResolveResponse`, length-delimited, before its content. */
function envelope(length: number): Uint8Array {
  const bytes = [(2 << 3) | 2];
  let rest = length;
  while (rest > 0x7f) {
    bytes.push((rest & 0x7f) | 0x80);
    rest >>>= 7;
  }
  return Uint8Array.from([...bytes, rest]);
}
