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
  const code = status[catalogue[refusal.reason].status];
  const message = sentenceOf(refusal);
  const info = ErrorInfo.encode({
    reason: refusal.reason,
    domain: DOMAIN,
    metadata: { ...refusal.facts },
  }).finish();
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
  return { request, reason: Reason[refusal.reason], facts: { ...refusal.facts } };
}

/** Undefined when the other side knows a name that this build does not. */
export function fromRefused(message: Refused): Refusal | undefined {
  const reason = reasonName(message.reason);
  return reason === undefined ? undefined : { reason, facts: message.facts };
}

export function toCloseReason(name: CloseReasonName): CloseReason {
  return CloseReason[name];
}
