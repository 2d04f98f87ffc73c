/** Time as an input. Nothing orders, expires or proves by a wall clock but a certificate's own end. */
export interface Clock {
  /** Milliseconds since 1970. For readers and for certificates only. */
  now(): number;
  /** Milliseconds from an arbitrary start that never goes back. For lengths. */
  monotonic(): number;
  /** Calls once after `delayMs`, unless disposed before. */
  after(delayMs: number, call: () => void): Disposable;
}
