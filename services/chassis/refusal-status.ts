/** Refusals across gRPC: a status, and the name with its facts in `grpc-status-details-bin`. */
import { Metadata, type ServiceError, type StatusObject, status } from '@grpc/grpc-js';
import { CloseReason, Reason, type Refused } from '#gen/wheelhouse/refusal/v1/refusal.js';
import { ErrorInfo, Status } from '#gen/wheelhouse/refusal/v1/status.js';
import {
  type CloseReasonName,
  catalogue,
  parseReasonName,
  type Refusal,
  reasonName,
  sentenceOf,
} from '#kernel/refusal.js';

const DETAILS = 'grpc-status-details-bin';
const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo';
const DOMAIN = 'wheelhouse';

/** The status that ends a refused call. */
export function statusOf(refusal: Refusal): Required<StatusObject> {
  const { reason } = refusal;
  const facts = toldFacts(refusal.facts);
  const code = status[catalogue[reason].status];
  const message = sentenceOf({ reason, facts });
  const info = ErrorInfo.encode({ reason, domain: DOMAIN, metadata: facts }).finish();
  const details = Status.encode({
    code,
    message,
    details: [{ typeUrl: ERROR_INFO, value: Buffer.from(info) }],
  }).finish();
  const metadata = new Metadata();
  metadata.set(DETAILS, Buffer.from(details));
  return { code, details: message, metadata };
}

/** The refusal inside an ended call's status; undefined for a fault, whose call got no ruling. */
export function refusalOf(error: Pick<ServiceError, 'metadata'>): Refusal | undefined {
  const [raw] = error.metadata?.get(DETAILS) ?? [];
  if (!(raw instanceof Buffer)) {
    return undefined;
  }
  const info = Status.decode(raw).details.find((detail) => detail.typeUrl === ERROR_INFO);
  if (info === undefined) {
    return undefined;
  }
  const { domain, reason, metadata } = ErrorInfo.decode(info.value);
  const name = parseReasonName(reason);
  return domain === DOMAIN && name !== undefined ? { reason: name, facts: metadata } : undefined;
}

/** A refusal of one operation on a living stream. */
export function toRefused(refusal: Refusal, request = 0n): Refused {
  return { request, reason: Reason[refusal.reason], facts: toldFacts(refusal.facts) };
}

/**
 * Facts as they are told and logged, each cut to a length for people.
 *
 * Some repeat what the caller gave. A status travels in trailers, which HTTP/2 does not send at all
 * beyond 64 KiB: the caller would wait for its refusal for ever.
 */
export function toldFacts(facts: Refusal['facts']): Record<string, string> {
  const told = Object.entries(facts).map(([key, value]) => [key, cut(value)]);
  return Object.fromEntries(told);
}

/** Longest fact told, in characters: more than any name or path that people read in a sentence. */
const factMax = 256;

/** Never half of a character: a status with one could not be encoded. */
function cut(value: string): string {
  return value.length <= factMax
    ? value
    : Buffer.from(`${value.slice(0, factMax - 1)}…`, 'utf8').toString();
}

/** Undefined when the other side knows a name that this build does not. */
export function fromRefused(message: Refused): Refusal | undefined {
  const reason = reasonName(message.reason);
  return reason === undefined ? undefined : { reason, facts: message.facts };
}

export function toCloseReason(name: CloseReasonName): CloseReason {
  return CloseReason[name];
}
