/** What the main thread and the reader thread say to each other. */

/** To the reader thread, on its message port; the doorbell is rung after each. */
export type ReaderCommand =
  /** Read this terminal into this ring, and own both descriptors: only `close` closes them. */
  | {
      readonly kind: 'open';
      readonly id: number;
      readonly master: number;
      readonly slave: number;
      readonly memory: SharedArrayBuffer;
    }
  /** The first process has been waited for: read what is left of its output, then end the ring (law B7). */
  | { readonly kind: 'reaped'; readonly id: number }
  /** A write was cut short: say when the terminal takes bytes again. */
  | { readonly kind: 'await-writable'; readonly id: number }
  /** Stop reading and close both descriptors. */
  | { readonly kind: 'close'; readonly id: number };

/** To the main thread: at most one a turn of the reader thread, and none that has been said already. */
export interface ReaderNews {
  /** Terminals with bytes, a full ring or an end the main thread has not seen. */
  readonly progressed: readonly number[];
  readonly writable: readonly number[];
  readonly closed: readonly number[];
}

/** What the reader thread is started with. */
export interface ReaderStart {
  readonly commands: import('node:worker_threads').MessagePort;
  /** An eventfd: rung after a command, after room was made in a ring the reader had parked, and to stop. */
  readonly doorbell: number;
  /** One Int32: 1 when the thread is to end. */
  readonly stop: SharedArrayBuffer;
  /** Bytes read after the reap at most, before the end is said to stand there (law B7). */
  readonly endDrainMax: number;
}
