/** Starts the reader and hears what it saw. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Designation } from '#client/presentation.js';
import type { Sighting } from './reader.js';
import type { Scene } from './scene.js';

const PROGRAM = join(dirname(fileURLToPath(import.meta.url)), 'reader.js');

export class ReaderProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #input: Interface;

  private constructor(child: ChildProcess, input: Interface) {
    this.#child = child;
    this.#input = input;
    this.#lines = input[Symbol.asyncIterator]();
  }

  /** Returns when the look has begun. */
  static async open(
    scene: Scene,
    worker: Designation,
    ...flags: readonly ('--hash' | '--stall')[]
  ): Promise<ReaderProcess> {
    const { stateDir, endpoints } = scene.stack;
    const child = spawn(
      process.execPath,
      [
        PROGRAM,
        stateDir,
        endpoints.authority,
        endpoints.data,
        scene.operator,
        worker.workerRef,
        String(worker.generation),
        ...flags,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const reader = new ReaderProcess(child, createInterface({ input: child.stdout }));
    await reader.#line('open');
    return reader;
  }

  /** Returns when the look has ended. */
  async seen(): Promise<Sighting> {
    return JSON.parse(await this.#line('{')) as Sighting;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#input.close();
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill('SIGKILL');
      await once(this.#child, 'exit');
    }
  }

  async #line(start: string): Promise<string> {
    const { value } = await this.#lines.next();
    if (typeof value !== 'string' || !value.startsWith(start)) {
      throw new Error(`the reader said ${value} instead of ${start}…`);
    }
    return value;
  }
}
