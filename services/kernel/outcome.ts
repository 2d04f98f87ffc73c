/** Yes with a value, or a named no. A refusal is a value: it is returned, never thrown. */
import type { Facts, ReasonName, Refusal } from './refusal.js';

export type Outcome<Value> =
  | { readonly kind: 'granted'; readonly value: Value }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

export function granted<Value>(value: Value): Outcome<Value> {
  return { kind: 'granted', value };
}

export function refused(reason: ReasonName, facts: Facts = {}): Outcome<never> {
  return { kind: 'refused', refusal: { reason, facts } };
}

/** Goes on with the value, or hands the refusal through. */
export function andThen<Value, Next>(
  outcome: Outcome<Value>,
  next: (value: Value) => Outcome<Next>,
): Outcome<Next> {
  return outcome.kind === 'refused' ? outcome : next(outcome.value);
}
