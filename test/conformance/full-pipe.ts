/** A pipe into which nothing more goes until it is drained. */
import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';

export class FullPipe implements Disposable {
  /** For a child: its writes wait. */
  readonly writer: number;
  readonly #mine: number;

  /** Made at a path where nothing is. */
  constructor(path: string) {
    execFileSync('mkfifo', [path]);
    this.#mine = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    this.writer = openSync(path, 'w');
    untilItWouldWait(() => writeSync(this.#mine, Buffer.alloc(4096)));
  }

  drain(): void {
    untilItWouldWait(() => readSync(this.#mine, Buffer.alloc(65_536)));
  }

  [Symbol.dispose](): void {
    closeSync(this.#mine);
    closeSync(this.writer);
  }
}

function untilItWouldWait(act: () => number): void {
  try {
    while (act() > 0) {
      // More of it.
    }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) {
      throw error;
    }
  }
}
