/**
 * The names and counters of the system, branded so that one cannot stand in for another.
 *
 * A `…Ref` names and never entitles: knowing one is worth nothing.
 */
declare const brand: unique symbol;
type Branded<Base, Name extends string> = Base & { readonly [brand]: Name };

/** What the operator opened and what a page may name. */
export type WorkerRef = Branded<string, 'WorkerRef'>;
/** The durable position under a worker. */
export type LocusRef = Branded<string, 'LocusRef'>;
/** The life of one bound identity. */
export type PeerRef = Branded<string, 'PeerRef'>;
/** A data node's hosting of an occupant. */
export type CarrierRef = Branded<string, 'CarrierRef'>;
/** The terminal an occupant possesses. */
export type AttachmentRef = Branded<string, 'AttachmentRef'>;
/** One life of a data service. */
export type DataIncarnation = Branded<string, 'DataIncarnation'>;
/** One life of authority. */
export type WorldIncarnation = Branded<string, 'WorldIncarnation'>;
/** The certificates that continue one another: the first one's fingerprint. */
export type Lineage = Branded<string, 'Lineage'>;
/** Same name, object made anew. Starts at 1. */
export type Generation = Branded<bigint, 'Generation'>;
/** Same object, new holder. Starts at 1. */
export type Epoch = Branded<bigint, 'Epoch'>;

/** Takes a string for a name. Only edges and id ports do this. */
export function ref<Ref extends Branded<string, string>>(value: string): Ref {
  return value as Ref;
}

export function generation(value: bigint): Generation {
  return value as Generation;
}

export function epoch(value: bigint): Epoch {
  return value as Epoch;
}
