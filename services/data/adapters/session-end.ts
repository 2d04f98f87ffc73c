/**
 * Sees to it that nothing is left of a terminal's session once it was hung up (law B7).
 *
 * One scan of the process table serves every session that is ending. The kernel keeps a session's id
 * from being given again while any member lives, so an id is only trusted until the session was seen
 * empty, and not at all when another process holds it after the first one was reaped.
 */
import { constants } from 'node:os';
import { Fault } from '#chassis/fault.js';
import { PosixFault, sessionOf, signalExactly } from './posix.js';
import { findProcess, listProcessIds, type ProcessEntry } from './process-table.js';

/** How long a program has to leave after SIGHUP, before SIGKILL (law B7). */
const hangUpGraceMs = 2_000;
/** How long the kernel may take after SIGKILL: only a process stuck inside it needs longer. */
const killGraceMs = 8_000;
/** Between two scans, so that they cost a few percent of a core: one takes about 1 ms for 1,000 processes. */
const scanEveryMs = 20;
/**
 * A child born while the table was listed, whose parent left before it was looked at, is seen by
 * nobody. After this many scans that found no member, but missed somebody, the session counts as empty.
 */
const doubtfulScansMax = 3;

/** Something of a session outlived SIGKILL. */
export class SessionOutlivedFault extends Fault {
  override readonly name = 'SessionOutlivedFault';
}

/** A session whose terminal is closed. */
export interface EndingSession {
  /** Its id: the process id of its first process. */
  readonly id: number;
  /** Whether the first process has been waited for. */
  readonly isReaped: boolean;
}

interface Ending {
  readonly session: EndingSession;
  readonly killAt: number;
  readonly giveUpAt: number;
  readonly resolve: () => void;
  readonly reject: (fault: SessionOutlivedFault) => void;
  doubtfulScans: number;
}

export class SessionEnder {
  readonly #endings = new Set<Ending>();
  #scheduled: { readonly timer: NodeJS.Timeout; readonly delayMs: number } | undefined;

  /**
   * Resolves when no process of the session is left; kills what is left after the grace. Rejects with
   * a `SessionOutlivedFault` when that did not help either.
   */
  end(session: EndingSession): Promise<void> {
    return new Promise((resolve, reject) => {
      const killAt = performance.now() + hangUpGraceMs;
      const giveUpAt = killAt + killGraceMs;
      this.#endings.add({ session, killAt, giveUpAt, resolve, reject, doubtfulScans: 0 });
      this.#scanIn(0);
    });
  }

  /** Says that a first process was reaped just now, so that nobody waits for the next scan. */
  hurry(): void {
    if (this.#endings.size > 0) {
      this.#scanIn(0);
    }
  }

  #scanIn(delayMs: number): void {
    if (this.#scheduled !== undefined && this.#scheduled.delayMs <= delayMs) {
      return;
    }
    clearTimeout(this.#scheduled?.timer);
    this.#scheduled = { timer: setTimeout(() => this.#scan(), delayMs), delayMs };
  }

  #scan(): void {
    this.#scheduled = undefined;
    const scan = scanIfPossible(new Set([...this.#endings].map((ending) => ending.session.id)));
    for (const ending of this.#endings) {
      this.#judge(ending, scan);
    }
    if (this.#endings.size > 0) {
      this.#scanIn(scanEveryMs);
    }
  }

  #judge(ending: Ending, scan: SessionScan | Fault): void {
    if (scan instanceof Fault) {
      this.#giveUpIfLate(ending, scan);
      return;
    }
    const { session } = ending;
    const members = scan.members.get(session.id) ?? [];
    if (session.isReaped && (members.length === 0 || isIdReused(session, members))) {
      ending.doubtfulScans += 1;
      if (!scan.isDoubtful || ending.doubtfulScans >= doubtfulScansMax) {
        this.#endings.delete(ending);
        ending.resolve();
      }
      return;
    }
    ending.doubtfulScans = 0;
    if (!this.#giveUpIfLate(ending) && performance.now() >= ending.killAt) {
      killMembers(session, members);
    }
  }

  #giveUpIfLate(ending: Ending, cause?: Fault): boolean {
    const isLate = performance.now() >= ending.giveUpAt;
    if (isLate) {
      const told = `session ${ending.session.id} outlived SIGKILL`;
      this.#endings.delete(ending);
      ending.reject(new SessionOutlivedFault(told, { cause }));
    }
    return isLate;
  }
}

/** Once the first process is reaped its id is free again, unless members hold it as their session. */
function isIdReused(session: EndingSession, members: readonly ProcessEntry[]): boolean {
  return members.some((member) => member.pid === session.id);
}

function killMembers(session: EndingSession, members: readonly ProcessEntry[]): void {
  for (const { pid } of members) {
    try {
      signalExactly(pid, constants.signals.SIGKILL, () => sessionOf(pid) === session.id);
    } catch (fault) {
      // Not ours to kill (it changed its user), or no descriptor for it: the next scan tries again.
      if (!(fault instanceof PosixFault)) {
        throw fault;
      }
    }
  }
}

interface SessionScan {
  readonly members: ReadonlyMap<number, readonly ProcessEntry[]>;
  /** Whether a process left while the scan ran: a child of its may have been missed. */
  readonly isDoubtful: boolean;
}

/** Out of descriptors, nothing can be seen: that is no sign that nobody is left. */
function scanIfPossible(ids: ReadonlySet<number>): SessionScan | Fault {
  try {
    return scanSessions(ids);
  } catch (cause) {
    return new Fault('the processes of this machine cannot be listed', { cause });
  }
}

/** getsid(2) costs a hundredth of reading a file, so only members' files are read. */
function scanSessions(ids: ReadonlySet<number>): SessionScan {
  const members = new Map<number, ProcessEntry[]>();
  let isDoubtful = false;
  for (const pid of listProcessIds()) {
    const session = sessionOf(pid);
    if (session === undefined) {
      isDoubtful = true;
    } else if (ids.has(session)) {
      const entry = findProcess(pid);
      if (entry?.isRunning && entry.session === session) {
        members.set(session, [...(members.get(session) ?? []), entry]);
      } else {
        isDoubtful = true;
      }
    }
  }
  return { members, isDoubtful };
}
