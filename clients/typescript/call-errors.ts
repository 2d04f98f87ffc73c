/** The two ways a call does not work for its caller: a named no, and no answer. */
import { type ServiceError, status } from '@grpc/grpc-js';
import { refusalOf } from '#chassis/refusal-status.js';
import { kebab, type Refusal, sentenceOf } from '#kernel/refusal.js';

/** The service ruled no, by name. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(`${kebab(refusal.reason)}: ${sentenceOf(refusal)}`);
    this.refusal = refusal;
  }
}

/** The service gave no ruling: it is away, or the transport broke. What was asked may have happened. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
  /** Which service, and where it was looked for. */
  readonly service: string;
  /** What was seen instead of an answer. */
  readonly why: string;

  constructor(service: string, why: string, cause?: unknown) {
    super(`${service} gave no answer: ${why}`, { cause });
    this.service = service;
    this.why = why;
  }
}

export type CallError = RefusedError | UnreachableError;

/**
 * What a failed call means to its caller. A status without a refusal's name is never read as one, and
 * what the stream itself fails with has no status at all.
 */
export function callError(error: Error & Partial<ServiceError>, service: string): CallError {
  const { code, metadata, details = error.message } = error;
  const refusal = metadata && refusalOf({ metadata });
  if (refusal !== undefined) {
    return new RefusedError(refusal);
  }
  const name = code === undefined ? undefined : status[code];
  // grpc-js ends some sentences with the heading of an empty note.
  const sentence = details.replace(/\s*Resolution note:\s*$/, '');
  return new UnreachableError(service, `${name ?? 'UNKNOWN'}: ${sentence}`, error);
}
