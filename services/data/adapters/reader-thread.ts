/**
 * The one thread that reads every terminal of this process.
 *
 * A turn: wait in epoll, do what the main thread asked, read what is ready, and tell the main thread
 * once. It never blocks anywhere else, so a terminal that floods, stalls or takes no input delays the
 * others by one turn's share at most (law B8).
 */
import {
  type MessagePort,
  parentPort,
  receiveMessageOnPort,
  workerData,
} from 'node:worker_threads';
import { assertNever, bug } from '#kernel/bug.js';
import { OutputRing } from './output-ring.js';
import {
  close,
  EpollEvents,
  epollIn,
  epollOut,
  openEpoll,
  read,
  silence,
  waitForEvents,
  watch,
  wouldBlock,
} from './posix.js';
import type { ReaderCommand, ReaderNews, ReaderStart } from './reader-messages.js';

/**
 * Bytes read in one turn from all terminals that are ready, in equal shares.
 *
 * It is what a quiet terminal waits for behind loud ones, about 2 ms; and each turn of a loud one costs
 * the main thread a message, so a smaller share makes it the slower, not the fairer, alone.
 */
const turnBytesMax = 256 * 1024;

/** The doorbell's tag among the events; terminals count from 1. */
const doorbellTag = 0;

interface Source {
  readonly id: number;
  readonly master: number;
  readonly slave: number;
  readonly ring: OutputRing;
  /** Whether output is waited for: not while the ring is full, nor after the end. */
  isReading: boolean;
  /** Whether it is waited for that the terminal takes input again. */
  isAwaitingWritable: boolean;
  /** What epoll knows of the two above. */
  watched: number;
  /** Once the first process has been reaped: how many bytes may still stand before the end. */
  drainBytesLeft: number | undefined;
}

class ReaderThread {
  readonly #start: ReaderStart;
  readonly #main: MessagePort;
  readonly #stop: Int32Array;
  readonly #epoll = openEpoll();
  readonly #events = new EpollEvents();
  readonly #sources = new Map<number, Source>();
  /** Sources whose ring was full when last looked at. */
  readonly #parked = new Set<Source>();
  /** What one terminal may take of this turn. */
  #shareBytes = turnBytesMax;
  #progressed: number[] = [];
  #writable: number[] = [];
  #closed: number[] = [];

  constructor(start: ReaderStart, main: MessagePort) {
    this.#start = start;
    this.#main = main;
    this.#stop = new Int32Array(start.stop);
    watch(this.#epoll, start.doorbell, { from: 0, to: epollIn, tag: doorbellTag });
  }

  run(): void {
    while (Atomics.load(this.#stop, 0) === 0) {
      this.#turn(waitForEvents(this.#epoll, this.#events));
      this.#tellMain();
    }
    close(this.#epoll);
    this.#start.commands.close();
  }

  #turn(eventCount: number): void {
    this.#shareBytes = Math.ceil(turnBytesMax / Math.max(eventCount, 1));
    for (let index = 0; index < eventCount; index += 1) {
      const tag = this.#events.tag(index);
      if (tag === doorbellTag) {
        this.#answerDoorbell();
      } else {
        this.#serve(this.#sources.get(tag), this.#events.events(index));
      }
    }
  }

  /** Silenced before it is answered: what is asked meanwhile rings it again. */
  #answerDoorbell(): void {
    silence(this.#start.doorbell);
    for (;;) {
      const received = receiveMessageOnPort(this.#start.commands);
      if (received === undefined) {
        break;
      }
      this.#obey(received.message as ReaderCommand);
    }
    for (const source of this.#parked) {
      if (!source.ring.isParked) {
        this.#parked.delete(source);
        this.#pump(source);
      }
    }
  }

  #obey(command: ReaderCommand): void {
    if (command.kind === 'open') {
      this.#open(command);
      return;
    }
    const source = this.#sources.get(command.id) ?? bug(`no terminal ${command.id}`);
    switch (command.kind) {
      case 'reaped':
        source.drainBytesLeft = this.#start.endDrainMax;
        this.#pumpUnlessParked(source);
        return;
      case 'await-writable':
        source.isAwaitingWritable = true;
        this.#rewatch(source);
        return;
      case 'close':
        this.#close(source);
        return;
      default:
        assertNever(command);
    }
  }

  #open(command: Extract<ReaderCommand, { kind: 'open' }>): void {
    const source: Source = {
      id: command.id,
      master: command.master,
      slave: command.slave,
      ring: OutputRing.over(command.memory),
      isReading: true,
      isAwaitingWritable: false,
      watched: 0,
      drainBytesLeft: undefined,
    };
    this.#sources.set(source.id, source);
    this.#rewatch(source);
  }

  /** The master first: its close is what hangs up the session. */
  #close(source: Source): void {
    source.isReading = false;
    source.isAwaitingWritable = false;
    this.#rewatch(source);
    this.#parked.delete(source);
    this.#sources.delete(source.id);
    close(source.master);
    close(source.slave);
    this.#closed.push(source.id);
  }

  /** `source` is undefined when a command earlier in this turn closed it. */
  #serve(source: Source | undefined, events: number): void {
    if (source?.isAwaitingWritable && (events & epollOut) !== 0) {
      source.isAwaitingWritable = false;
      this.#writable.push(source.id);
      this.#rewatch(source);
    }
    if (source?.isReading && (events & ~epollOut) !== 0) {
      this.#pump(source);
    }
  }

  #pumpUnlessParked(source: Source): void {
    if (!this.#parked.has(source)) {
      this.#pump(source);
    }
  }

  /** Reads one turn's share, and settles what the source waits for next. */
  #pump(source: Source): void {
    const written = source.ring.written;
    const stopped = this.#fill(source);
    source.isReading = stopped === 'empty' || stopped === 'share';
    if (stopped === 'full') {
      this.#parked.add(source);
    } else if (source.drainBytesLeft !== undefined) {
      source.isReading = false;
      source.ring.end();
    }
    this.#rewatch(source);
    const hasNews = source.ring.written !== written || source.ring.isParked || source.ring.hasEnded;
    if (hasNews && source.ring.announce()) {
      this.#progressed.push(source.id);
    }
  }

  /**
   * Reads until the terminal is empty, the ring is full, or the share is used up: a turn's, or after
   * the reap what may still stand before the end. `deaf` is a terminal somebody inside revoked:
   * reading it would spin.
   */
  #fill(source: Source): 'empty' | 'share' | 'full' | 'deaf' {
    let bytesLeft = source.drainBytesLeft ?? this.#shareBytes;
    while (bytesLeft > 0) {
      const span = source.ring.vacantSpan(bytesLeft);
      if (span.length === 0) {
        if (source.ring.park()) {
          return 'full';
        }
        continue;
      }
      const count = read(source.master, span);
      if (count < 0) {
        return count === wouldBlock ? 'empty' : 'deaf';
      }
      source.ring.commit(count);
      bytesLeft -= count;
      if (source.drainBytesLeft !== undefined) {
        source.drainBytesLeft = bytesLeft;
      }
    }
    return 'share';
  }

  #rewatch(source: Source): void {
    const wanted = (source.isReading ? epollIn : 0) | (source.isAwaitingWritable ? epollOut : 0);
    watch(this.#epoll, source.master, { from: source.watched, to: wanted, tag: source.id });
    source.watched = wanted;
  }

  #tellMain(): void {
    if (this.#progressed.length + this.#writable.length + this.#closed.length === 0) {
      return;
    }
    const news: ReaderNews = {
      progressed: this.#progressed,
      writable: this.#writable,
      closed: this.#closed,
    };
    this.#main.postMessage(news);
    this.#progressed = [];
    this.#writable = [];
    this.#closed = [];
  }
}

new ReaderThread(workerData as ReaderStart, parentPort ?? bug('not a worker thread')).run();
