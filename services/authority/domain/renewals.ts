/**
 * Which certificate continues which: the lineage of every renewed certificate, bounded.
 *
 * A certificate that nobody renewed is its own lineage. Records of one lineage are forgotten together,
 * when its newest certificate has ended: until then a connection made with an older one is still known,
 * and a terminal that runs over it goes on. So a lineage keeps what it has while there is room, however
 * much that is; when there is none, whoever holds the most gives up their own oldest, and nobody else's.
 */
import { granted, type Outcome, refused } from '#kernel/outcome.js';
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
 * renewing every half hour fill it in eight hours; then what has ended goes, and if all still live, a
 * quarter, of the longest lineages first: only a break of a connection as old as that would notice.
 */
export const renewalsMax = 16_384;
/** Those that are left when it was full. */
const roomAfter = (renewalsMax * 3) / 4;

/**
 * Renewals of one lineage within a quarter of a certificate's life.
 *
 * One process renews once in two quarters. Sixteen leave as many processes of one identity to themselves,
 * each renewing on a stream of its own, and bound what a loop may write to the journal.
 */
export const renewalsPerQuarterMax = 16;

/**
 * Whether a lineage may have another certificate of so long a life. Refuses REQUEST_INVALID.
 *
 * A refused one may be asked for again in the next quarter, three of which are left by then.
 */
export function admitRenewal(
  renewals: Renewals,
  lineage: Lineage,
  { nowMs, lifeMs }: { readonly nowMs: number; readonly lifeMs: number },
): Outcome<undefined> {
  const sinceMs = nowMs - lifeMs / 4;
  let count = 0;
  for (const renewal of renewals.values()) {
    count += renewal.lineage === lineage && renewal.issuedAtMs > sinceMs ? 1 : 0;
  }
  return count < renewalsPerQuarterMax
    ? granted(undefined)
    : refused('REQUEST_INVALID', {
        field: 'renew',
        rule: `at most ${renewalsPerQuarterMax} times in a quarter of a certificate's life`,
      });
}

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

/** Lineages whose newest certificate has ended, then the oldest of the longest, until a quarter is free. */
function forget(draft: Map<string, Renewal>, nowMs: number): void {
  const living = livingLineages(draft, nowMs);
  const ended = [...draft.values()].filter(({ lineage }) => !living.has(lineage));
  for (const { fingerprint } of ended) {
    draft.delete(fingerprint);
  }
  const counts = new Map<Lineage, number>();
  for (const { lineage } of draft.values()) {
    counts.set(lineage, (counts.get(lineage) ?? 0) + 1);
  }
  const share = fairShare([...counts.values()], roomAfter);
  for (const { fingerprint, lineage } of [...draft.values()]) {
    const count = counts.get(lineage) ?? 0;
    if (count > share) {
      draft.delete(fingerprint);
      counts.set(lineage, count - 1);
    }
  }
  const tooMany = Math.max(0, draft.size - roomAfter);
  for (const fingerprint of [...draft.keys()].slice(0, tooMany)) {
    draft.delete(fingerprint);
  }
}

/** The most that each may keep so that all fit; one, if not even that does. */
function fairShare(counts: readonly number[], room: number): number {
  let left = room;
  let sharers = counts.length;
  for (const count of [...counts].sort((one, other) => one - other)) {
    const share = Math.max(1, Math.floor(left / sharers));
    if (count > share) {
      return share;
    }
    left -= count;
    sharers -= 1;
  }
  return room;
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
