/**
 * The terminal a program runs in, as the data plane's core sees it.
 *
 * Positions are byte positions of the OUT space (law B1): the first byte the program ever wrote is
 * position 0, whoever reads it.
 */

/** How the terminal's first process ended. Exactly one of the two is set. */
export type Exit =
  | { readonly kind: 'code'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: number };

/** Character cells. Each is 1 to 65,535: the kernel silently wraps anything larger. */
export interface Geometry {
  readonly rows: number;
  readonly cols: number;
}

/** What is to run. `file` is an absolute path that was found executable before the fork. */
export interface TerminalSpec {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly geometry: Geometry;
}

/**
 * What a terminal tells its owner. Called on the main thread, never re-entrantly from inside a
 * method of the same terminal.
 */
export interface TerminalEvents {
  /** `producedSeq` has grown, or the ring has become full, or END is known. Coalesced: one call a turn. */
  readonly onProgress: () => void;
  /** After `write` accepted less than it was given: the terminal takes bytes again. */
  readonly onWritable: () => void;
}

/**
 * One running terminal. Single owner: nothing else reads, writes, resizes or closes its descriptor.
 */
export interface Terminal {
  /** Process id of the first process; also the id of its session. For supervision, never sent to anyone. */
  readonly pid: number;
  /** First position not yet read from the terminal. Only grows. */
  readonly producedSeq: bigint;
  /** First position still held in memory; `releasedSeq <= producedSeq`. Only grows. */
  readonly releasedSeq: bigint;
  /**
   * Whether reading from the terminal has stopped because no room is left in memory (the program
   * will block soon). Room is made by `release`; reading goes on when an eighth of it is free.
   */
  readonly isFull: boolean;
  /** Set once everything the program wrote before it was reaped has been read (law B7): then `producedSeq` is final. */
  readonly end: Exit | undefined;
  /**
   * Copies bytes from position `fromSeq` on into `target`, as many as are there and fit.
   * `fromSeq` must lie in `[releasedSeq, producedSeq]`. Returns the number of bytes copied.
   */
  copyOut(fromSeq: bigint, target: Uint8Array): number;
  /** Says that bytes before `uptoSeq` are not needed any more. A smaller position than before changes nothing. */
  release(uptoSeq: bigint): void;
  /**
   * Hands bytes to the terminal. Returns how many it took (law B5: accepted = written to the
   * terminal); fewer than given means it takes no more now, and `onWritable` will follow.
   * Returns 0 after END or `hangUp`.
   */
  write(bytes: Uint8Array): number;
  /** Sets the size and reads it back. Undefined when the terminal has ended (never throws for that, case C011). */
  resize(geometry: Geometry): Geometry | undefined;
  /** The size now, read from the kernel. Undefined when the terminal has ended. */
  geometry(): Geometry | undefined;
  /**
   * Closes the terminal: the session gets SIGHUP, and what of it is left after 2 s is killed.
   * Resolves when nothing of the session is left and every descriptor is closed; rejects with a Fault
   * when something of it outlives SIGKILL for 8 s. Idempotent. No event is delivered after it, and
   * `end` stays as it is.
   */
  hangUp(): Promise<void>;
}

/** Starts terminals and owns whatever they share. */
export interface TerminalHost extends AsyncDisposable {
  /** Starts a program in a new terminal. Throws a `SpawnFault` when the kernel refuses (no pty, no process). */
  spawn(spec: TerminalSpec, events: TerminalEvents): Terminal;
  /** Hangs up every terminal and ends the reader thread. No wait in it is unbounded. */
  [Symbol.asyncDispose](): Promise<void>;
}
