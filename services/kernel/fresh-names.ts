/** Unguessable new names. A port, so that the pure cores stay replayable. */
export interface FreshNames {
  /** A name such as `wk_<32 hex digits>`; the prefix says what it names. */
  fresh(prefix: 'wk' | 'lc' | 'pr' | 'cr' | 'at' | 'dn' | 'wd' | 'in'): string;
}
