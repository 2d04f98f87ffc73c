/**
 * Starts programs in terminals, and keeps the one thread that reads them all.
 *
 * Descriptors: a terminal's master and slave belong to the reader thread from its `open` command to its
 * `close` command, which closes them there, so that no number is read after it was given to something
 * else. The main thread writes and asks through the master until it has sent `close`. The slave is
 * held so that the terminal never looks hung up while programs let go of it, come back or leave: what
 * they wrote stays readable to the last byte (case C001).
 */
import { constants } from 'node:os';
import { Fault } from '#chassis/fault.js';
import { bug } from '#kernel/bug.js';
import type {
  Exit,
  Terminal,
  TerminalEvents,
  TerminalHost,
  TerminalSpec,
} from '../domain/terminal.js';
import { type Fork, nativeFork, type RunAs } from './native-fork.js';
import { OutputReader } from './output-reader.js';
import { OutputRing } from './output-ring.js';
import {
  close,
  openSlave,
  setAllCloseOnExec,
  setCloseOnExec,
  signalExactly,
  withFileRightsOf,
} from './posix.js';
import { PtyTerminal } from './pty-terminal.js';
import type { ReaderNews } from './reader-messages.js';
import { SessionEnder } from './session-end.js';

export interface TerminalHostOptions {
  /**
   * Bytes kept of each terminal's output, a power of two.
   *
   * 512 KiB: a used ring stays resident, and with it a terminal stays under 1 MiB. A reader's window
   * that is larger has no effect.
   */
  readonly ringBytes?: number;
  /** Bytes that may stand between the reap and END: more than the kernel holds (law B7). 64 KiB. */
  readonly endDrainMax?: number;
  /** The user that programs run as. Without it, the user of this process. */
  readonly runAs?: RunAs;
  /** What forks. Given only to see what a failure right after the fork leaves behind. */
  readonly fork?: Fork;
}

/** A program could not be started: the kernel refused, or the host is closing. */
export class SpawnFault extends Fault {
  override readonly name = 'SpawnFault';
}

/**
 * Starts a host without terminals. The process goes on until the host is disposed.
 *
 * With `runAs`, this process gives up its supplementary groups: its programs would inherit them.
 */
export function startTerminalHost(options: TerminalHostOptions = {}): TerminalHost {
  if (options.runAs !== undefined) {
    process.setgroups?.([options.runAs.gid]);
  }
  return new PtyHost(options);
}

const ringBytesDefault = 512 * 1024;
const endDrainMaxDefault = 64 * 1024;

/** A terminal, and what only its host knows of it. */
interface Kept {
  readonly terminal: PtyTerminal;
  readonly session: { readonly id: number; isReaped: boolean };
  /** Set once it is closing: what to do when the reader thread has closed both descriptors. */
  onClosed: (() => void) | undefined;
}

class PtyHost implements TerminalHost {
  readonly #options: TerminalHostOptions;
  readonly #reader: OutputReader;
  readonly #sessions = new SessionEnder();
  readonly #kept = new Map<number, Kept>();
  #lastId = 0;
  #isClosing = false;

  constructor(options: TerminalHostOptions) {
    this.#options = options;
    const endDrainMax = options.endDrainMax ?? endDrainMaxDefault;
    this.#reader = new OutputReader(endDrainMax, (news) => this.#hear(news));
  }

  spawn(spec: TerminalSpec, events: TerminalEvents): Terminal {
    if (this.#isClosing) {
      throw new SpawnFault('the terminal host is closing');
    }
    this.#lastId += 1;
    const id = this.#lastId;
    const ring = OutputRing.allocate(this.#options.ringBytes ?? ringBytesDefault);
    const { pid, master, slave } = this.#open(spec, (exit) => this.#reaped(id, exit));
    const terminal = new PtyTerminal({ pid, master, ring }, events, {
      makeRoomKnown: () => this.#reader.wake(),
      awaitWritable: () => this.#reader.ask({ kind: 'await-writable', id }),
      close: () => this.#close(id),
    });
    this.#kept.set(id, { terminal, session: { id: pid, isReaped: false }, onClosed: undefined });
    this.#reader.ask({ kind: 'open', id, master, slave, memory: ring.memory });
    return terminal;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true;
    const ended = await Promise.allSettled(
      [...this.#kept.values()].map(({ terminal }) => terminal.hangUp()),
    );
    await this.#reader.stop();
    const failed = ended.find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined) {
      throw failed.reason;
    }
  }

  /** With the file rights of the program's user, so that the terminal belongs to that user. */
  #open(spec: TerminalSpec, onReaped: (exit: Exit) => void): OpenedTerminal {
    const { runAs, fork = nativeFork } = this.#options;
    const open = () => openTerminal(() => fork({ ...spec, runAs }, onReaped));
    refuseNul(spec);
    return runAs === undefined ? open() : withFileRightsOf(runAs.uid, open);
  }

  #reaped(id: number, exit: Exit): void {
    const kept = this.#kept.get(id);
    if (kept === undefined) {
      return; // it was given up half made
    }
    kept.session.isReaped = true;
    kept.terminal.reaped(exit);
    if (kept.onClosed === undefined) {
      this.#reader.ask({ kind: 'reaped', id });
    } else {
      this.#sessions.hurry();
    }
  }

  async #close(id: number): Promise<void> {
    const kept = this.#kept.get(id) ?? bug(`no terminal ${id}`);
    await new Promise<void>((resolve) => {
      kept.onClosed = resolve;
      this.#reader.ask({ kind: 'close', id });
    });
    try {
      await this.#sessions.end(kept.session);
    } finally {
      this.#kept.delete(id);
    }
  }

  #hear(news: ReaderNews): void {
    for (const id of news.progressed) {
      this.#kept.get(id)?.terminal.progressed();
    }
    for (const id of news.writable) {
      this.#kept.get(id)?.terminal.writable();
    }
    for (const id of news.closed) {
      this.#kept.get(id)?.onClosed?.();
    }
  }
}

interface OpenedTerminal {
  readonly pid: number;
  readonly master: number;
  readonly slave: number;
}

/**
 * Forks so that the program inherits no descriptor of ours: not another terminal's master, which is
 * what a program would need to read or type in it, nor this one's when the next program is forked.
 */
function openTerminal(fork: () => { master: number; pid: number }): OpenedTerminal {
  setAllCloseOnExec();
  const { master, pid } = forked(fork);
  try {
    setCloseOnExec(master);
    return { pid, master, slave: openSlave(master) };
  } catch (cause) {
    close(master);
    signalExactly(pid, constants.signals.SIGKILL, () => true);
    throw new SpawnFault('a terminal was given up half made', { cause });
  }
}

function forked(fork: () => { master: number; pid: number }): { master: number; pid: number } {
  try {
    return fork();
  } catch (cause) {
    throw new SpawnFault('the kernel gives no terminal or no process', { cause });
  }
}

/** The kernel ends a string at NUL: what follows would be dropped in silence. */
function refuseNul(spec: TerminalSpec): void {
  const strings = [spec.file, spec.cwd, ...spec.args, ...Object.entries(spec.env).flat()];
  if (strings.some((string) => string.includes('\0'))) {
    throw new SpawnFault('a NUL in the program, its arguments or its environment');
  }
}
