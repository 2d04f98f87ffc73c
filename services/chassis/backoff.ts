/** How long to wait before the next attempt at something that is away. */
export interface Backoff {
  /** Before the first attempt again, ms. */
  readonly firstMs: number;
  /** Never longer than this, ms: what a return may go unnoticed for. */
  readonly maxMs: number;
}

/** Doubles with each attempt that failed, from `firstMs` up to `maxMs`. `failed` counts from 1. */
export function backoffMs({ firstMs, maxMs }: Backoff, failed: number): number {
  // 2^30 first steps are beyond any maximum, and still a number.
  return Math.min(maxMs, firstMs * 2 ** Math.min(Math.max(failed, 1) - 1, 30));
}
