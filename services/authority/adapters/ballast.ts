/**
 * Space on the journal's disk that is given up when the disk is full, so that what ends can be recorded.
 *
 * Low water keeps authority itself from filling its disk; whatever else writes there does not ask.
 */
import { closeSync, existsSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';

const CHUNK_BYTES = 1024 * 1024;

export class Ballast {
  readonly #path: string;
  readonly #bytes: number;
  #isHeld: boolean;

  /** Beside the journal. `bytes` 0 keeps nothing. What an earlier life kept is taken over. */
  constructor(journalPath: string, bytes: number) {
    this.#path = join(dirname(journalPath), 'ballast');
    this.#bytes = bytes;
    this.#isHeld = existsSync(this.#path);
  }

  /**
   * Takes the space, unless it is held already or the disk has not twice as much to give: it is for an
   * emergency, and must not become one.
   */
  take(freeBytes: () => number): void {
    if (this.#isHeld || this.#bytes === 0 || freeBytes() < 2 * this.#bytes) {
      return;
    }
    try {
      this.#write();
      this.#isHeld = true;
    } catch {
      // Somebody else was faster: less is no help, and the next append looks again.
      rmSync(this.#path, { force: true });
    }
  }

  /** Gives the space back. False when there was none. */
  give(): boolean {
    const wasHeld = this.#isHeld;
    rmSync(this.#path, { force: true });
    this.#isHeld = false;
    return wasHeld;
  }

  /** Written, not merely sized: a hole takes no space. */
  #write(): void {
    const file = openSync(this.#path, 'w', 0o600);
    try {
      const chunk = Buffer.alloc(CHUNK_BYTES);
      for (let left = this.#bytes; left > 0; left -= CHUNK_BYTES) {
        writeSync(file, chunk, 0, Math.min(left, CHUNK_BYTES));
      }
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  }
}
