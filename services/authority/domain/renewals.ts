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
 * renewing every half hour fill it in about eight hours of runs that all still live; beyond that the
 * oldest record goes, and only a break of a connection as old as that would notice.
 */
export const renewalsMax = 16_384;

/** Adds a renewal and forgets lineages that have ended. */
export function keepRenewal(renewals: Renewals, renewal: Renewal): Renewals {
  const { fingerprint, lineage, notAfterMs, issuedAtMs } = renewal;
  const added = new Map(renewals);
  added.set(fingerprint, { fingerprint, lineage, notAfterMs, issuedAtMs });
  const living = livingLineages(added, issuedAtMs);
  const kept = [...added].filter(([, each]) => living.has(each.lineage));
  return new Map(kept.slice(-renewalsMax));
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
