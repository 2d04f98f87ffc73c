/** The main thread's side of the reader thread: starts it, asks it, hears it, ends it. */
import { once } from 'node:events';
import { MessageChannel, Worker } from 'node:worker_threads';
import { Fault } from '#chassis/fault.js';
import { bug } from '#kernel/bug.js';
import { close, openEventfd, ring } from './posix.js';
import type { ReaderCommand, ReaderNews, ReaderStart } from './reader-messages.js';

/** The thread looks at its stop flag at every turn: only a kernel that hangs keeps it longer. */
const stopDeadlineMs = 5_000;

export class OutputReader {
  readonly #commands = new MessageChannel();
  readonly #doorbell = openEventfd();
  readonly #stop = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  readonly #worker: Worker;
  /** A thread inside epoll_wait keeps a process from exiting, so it is told in any case. */
  readonly #halt = (): void => {
    Atomics.store(this.#stop, 0, 1);
    ring(this.#doorbell);
  };
  #isStopping = false;

  constructor(endDrainMax: number, onNews: (news: ReaderNews) => void) {
    const start: ReaderStart = {
      commands: this.#commands.port2,
      doorbell: this.#doorbell,
      stop: this.#stop.buffer,
      endDrainMax,
    };
    this.#worker = new Worker(new URL('./reader-thread.js', import.meta.url), {
      workerData: start,
      // This process may have been told to find sources for what it imports; the thread runs compiled.
      execArgv: [],
      transferList: [this.#commands.port2],
    });
    // No listener for 'error': what the thread throws is a bug and ends the process.
    this.#worker.on('message', onNews);
    this.#worker.on('exit', () => {
      if (!this.#isStopping) {
        bug('the reader thread has ended by itself');
      }
    });
    process.on('exit', this.#halt);
  }

  ask(command: ReaderCommand): void {
    this.#commands.port1.postMessage(command);
    this.wake();
  }

  /** Has it look at the rings it has parked. */
  wake(): void {
    if (!this.#isStopping) {
      ring(this.#doorbell);
    }
  }

  /** Ends the thread. Nobody may ask anything any more. */
  async stop(): Promise<void> {
    if (this.#isStopping) {
      return;
    }
    this.#isStopping = true;
    const exited = once(this.#worker, 'exit', { signal: AbortSignal.timeout(stopDeadlineMs) });
    this.#halt();
    await exited.catch((cause: unknown) => {
      throw new Fault('the reader thread does not end', { cause });
    });
    process.off('exit', this.#halt);
    this.#commands.port1.close();
    close(this.#doorbell);
  }
}
