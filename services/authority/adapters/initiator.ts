/**
 * The initiator's incarnation: minted beside a control peer, written to the journal, read by nobody.
 *
 * It authorises nothing. Only the journal's writer may import this file (docs/architecture.md, identity); a test walks the
 * imports to prove it.
 */
import type { FreshNames } from '#kernel/fresh-names.js';

declare const initiator: unique symbol;

/** One life at the controls, as the record names it. */
export type InitiatorIncarnation = string & { readonly [initiator]: true };

export function mintInitiator(names: FreshNames): InitiatorIncarnation {
  return names.fresh('in') as InitiatorIncarnation;
}
