/** One terminal, as its only owner on the main thread holds it. */
import { bug } from '#kernel/bug.js';
import type { Exit, Geometry, Terminal, TerminalEvents } from '../domain/terminal.js';
import type { OutputRing } from './output-ring.js';
import { hungUp, setWindowSize, windowSize, wouldBlock, write } from './posix.js';

/** What a terminal needs of whoever started it. */
export interface TerminalKeeper {
  /** Has the reader thread go on with rings in which room was made. */
  readonly makeRoomKnown: () => void;
  /** Has the reader thread say when the terminal takes bytes again. */
  readonly awaitWritable: () => void;
  /** Closes both descriptors; resolves when nothing of the session is left either. */
  readonly close: () => Promise<void>;
}

export class PtyTerminal implements Terminal {
  readonly pid: number;
  readonly #master: number;
  readonly #ring: OutputRing;
  readonly #events: TerminalEvents;
  readonly #keeper: TerminalKeeper;
  #producedSeq = 0n;
  #releasedSeq = 0n;
  /** How it ended, known at the reap: the end stands where the reader thread has drained it to. */
  #exit: Exit | undefined;
  #hangUp: Promise<void> | undefined;

  constructor(
    opened: { readonly pid: number; readonly master: number; readonly ring: OutputRing },
    events: TerminalEvents,
    keeper: TerminalKeeper,
  ) {
    this.pid = opened.pid;
    this.#master = opened.master;
    this.#ring = opened.ring;
    this.#events = events;
    this.#keeper = keeper;
  }

  get producedSeq(): bigint {
    // The ring counts modulo 2^32 and is never that far ahead.
    const grown = (this.#ring.written - Number(this.#producedSeq & 0xffff_ffffn)) >>> 0;
    if (grown > 0) {
      this.#producedSeq += BigInt(grown);
    }
    return this.#producedSeq;
  }

  get releasedSeq(): bigint {
    return this.#releasedSeq;
  }

  get isFull(): boolean {
    return this.#ring.isParked;
  }

  get end(): Exit | undefined {
    return this.#ring.hasEnded ? this.#exit : undefined;
  }

  copyOut(fromSeq: bigint, target: Uint8Array): number {
    const available = this.producedSeq - fromSeq;
    if (fromSeq < this.#releasedSeq || available < 0n) {
      bug(`position ${fromSeq} outside ${this.#releasedSeq} to ${this.#producedSeq}`);
    }
    const count = Math.min(Number(available), target.length);
    this.#ring.copy(Number(fromSeq & 0xffff_ffffn), count, target);
    return count;
  }

  release(uptoSeq: bigint): void {
    if (uptoSeq <= this.#releasedSeq) {
      return;
    }
    if (uptoSeq > this.producedSeq) {
      bug(`position ${uptoSeq} released, ${this.#producedSeq} produced`);
    }
    const count = Number(uptoSeq - this.#releasedSeq);
    this.#releasedSeq = uptoSeq;
    if (this.#ring.release(count)) {
      this.#keeper.makeRoomKnown();
    }
  }

  write(bytes: Uint8Array): number {
    if (!this.#isUsable || bytes.length === 0) {
      return 0;
    }
    const answer = write(this.#master, bytes);
    if (answer === hungUp) {
      return 0;
    }
    const count = answer === wouldBlock ? 0 : answer;
    if (count < bytes.length) {
      this.#keeper.awaitWritable();
    }
    return count;
  }

  resize(geometry: Geometry): Geometry | undefined {
    if (!this.#isUsable) {
      return undefined;
    }
    setWindowSize(this.#master, geometry.rows, geometry.cols);
    return windowSize(this.#master);
  }

  geometry(): Geometry | undefined {
    return this.#isUsable ? windowSize(this.#master) : undefined;
  }

  hangUp(): Promise<void> {
    this.#hangUp ??= this.#keeper.close();
    return this.#hangUp;
  }

  /** For the host: the first process has been waited for. */
  reaped(exit: Exit): void {
    this.#exit = exit;
  }

  /** For the host: the reader thread has news of the ring. */
  progressed(): void {
    this.#ring.hear();
    if (this.#hangUp === undefined) {
      this.#events.onProgress();
    }
  }

  /** For the host: the terminal takes bytes again. */
  writable(): void {
    if (this.#isUsable) {
      this.#events.onWritable();
    }
  }

  /** The descriptor is ours from the fork to `hangUp`; after END only its output is of use. */
  get #isUsable(): boolean {
    return this.#hangUp === undefined && !this.#ring.hasEnded;
  }
}
