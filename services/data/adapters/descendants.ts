/**
 * What descends from this process, whoever its parent was: kept, waited for and, in the end, ended.
 *
 * A subreaper becomes the parent of whatever below it loses its own, sessions of their own included, so
 * its descendants are all there is. Both data and its reaper are one: each ends them when the other is
 * gone (law B7).
 */
import { constants } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { becomeSubreaper, endedChild, PosixFault, reap, signalExactly } from './posix.js';
import { descendantsOf, findProcess, listProcesses, type ProcessEntry } from './process-table.js';

/** How long programs have to leave: their terminals are hung up by then, or about to be. */
const leaveGraceMs = 2_000;
/** How long after SIGKILL the kernel may take: only a process stuck inside it needs longer. */
const killGraceMs = 8_000;
const lookEveryMs = 20;

export class Descendants implements Disposable {
  readonly #isAwaited: (pid: number) => boolean;
  readonly #onEnded = (): void => this.#reap();
  #again: NodeJS.Timeout | undefined;

  /** `isAwaited`: whether somebody else here waits for this child, and would never hear of its end. */
  constructor(isAwaited: (pid: number) => boolean) {
    this.#isAwaited = isAwaited;
    becomeSubreaper();
    process.on('SIGCHLD', this.#onEnded);
  }

  /** Resolves when none is left: those that do not leave by themselves are killed after a grace. */
  async end(): Promise<void> {
    const killAt = performance.now() + leaveGraceMs;
    const giveUpAt = killAt + killGraceMs;
    for (;;) {
      this.#reap();
      const left = descendantsOf(process.pid, listProcesses());
      const now = performance.now();
      if (left.length === 0 || now >= giveUpAt) {
        return;
      }
      if (now >= killAt) {
        killAll(left);
      }
      await delay(lookEveryMs);
    }
  }

  [Symbol.dispose](): void {
    process.off('SIGCHLD', this.#onEnded);
    clearTimeout(this.#again);
  }

  /** The kernel names one child at a time: behind one that is awaited the others wait for a moment. */
  #reap(): void {
    for (let pid = endedChild(); pid !== undefined; pid = endedChild()) {
      if (this.#isAwaited(pid)) {
        clearTimeout(this.#again);
        this.#again = setTimeout(this.#onEnded, lookEveryMs);
        return;
      }
      reap(pid);
    }
  }
}

function killAll(processes: readonly ProcessEntry[]): void {
  for (const { pid, startTime } of processes) {
    try {
      signalExactly(
        pid,
        constants.signals.SIGKILL,
        () => findProcess(pid)?.startTime === startTime,
      );
    } catch (fault) {
      // Not ours to kill: it is left to the next look, and in the end to whoever is above us.
      if (!(fault instanceof PosixFault)) {
        throw fault;
      }
    }
  }
}
