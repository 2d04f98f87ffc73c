/**
 * Which certificate continues which: the lineage of every renewed certificate, bounded.
 *
 * A certificate that nobody renewed is its own lineage. Records of one lineage are forgotten together,
 * when its newest certificate has ended: until then a connection made with an older one is still known.
 */
import { type Lineage, ref } from '#kernel/refs.js';

/** A certificate issued in continuation of another. */
export interface Renewal {
  /** SHA-256 of the new certificate, lower-case hex. */
  readonly fingerprint: string;
  readonly lineage: Lineage;
  /** End of the new certificate, milliseconds since 1970. */
  readonly notAfterMs: number;
  /** When it was issued, milliseconds since 1970: what has ended by then is forgotten. */
  readonly issuedAtMs: number;
}

/** By fingerprint, oldest first. */
export type Renewals = ReadonlyMap<string, Renewal>;

export const noRenewals: Renewals = new Map();

/**
 * Renewals that are remembered, over all lineages.
 *
 * A constant and no setting: the fold must give the same world under every configuration. 1,000 runs
 * renewing every half hour fill it in eight hours; then what has ended goes, and if all still live, the
 * oldest quarter: only a break of a connection as old as that would notice.
 */
export const renewalsMax = 16_384;

/**
 * Adds a renewal to a draft of its caller's own. Forgets only when it is full, so that reading a long
 * journal costs little for each.
 */
export function keepRenewal(draft: Map<string, Renewal>, renewal: Renewal): void {
  const { fingerprint, lineage, notAfterMs, issuedAtMs } = renewal;
  draft.set(fingerprint, { fingerprint, lineage, notAfterMs, issuedAtMs });
  if (draft.size > renewalsMax) {
    forget(draft, issuedAtMs);
  }
}

/** Lineages whose newest certificate has ended, then the oldest records, until a quarter is free. */
function forget(draft: Map<string, Renewal>, nowMs: number): void {
  const living = livingLineages(draft, nowMs);
  const ended = [...draft.values()].filter(({ lineage }) => !living.has(lineage));
  for (const { fingerprint } of ended) {
    draft.delete(fingerprint);
  }
  const tooMany = Math.max(0, draft.size - (renewalsMax * 3) / 4);
  for (const fingerprint of [...draft.keys()].slice(0, tooMany)) {
    draft.delete(fingerprint);
  }
}

function livingLineages(renewals: Renewals, nowMs: number): ReadonlySet<Lineage> {
  const living = new Set<Lineage>();
  for (const { lineage, notAfterMs } of renewals.values()) {
    if (notAfterMs > nowMs) {
      living.add(lineage);
    }
  }
  return living;
}

/** The lineage of a certificate: recorded, or its own. */
export function lineageOf(renewals: Renewals, fingerprint: string): Lineage {
  return renewals.get(fingerprint)?.lineage ?? ref<Lineage>(fingerprint);
}

/** End of the newest renewal of a lineage, milliseconds since 1970; 0 when it was never renewed. */
export function newestEndOf(renewals: Renewals, lineage: Lineage): number {
  let newest = 0;
  for (const renewal of renewals.values()) {
    if (renewal.lineage === lineage && renewal.notAfterMs > newest) {
      newest = renewal.notAfterMs;
    }
  }
  return newest;
}
