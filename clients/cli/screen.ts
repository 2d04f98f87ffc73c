/**
 * The terminal a person sits at, or whatever stands in its place: where shown bytes go, and what is
 * typed meanwhile.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Geometry } from '#gen/wheelhouse/data/v1/data.js';
import { enterRawMode, type RawMode } from './raw-mode.js';
import { TerminalModes } from './terminal-modes.js';

/** Answers to the last queries in the output come within this; what comes later is no answer of a near terminal. */
const QUIET_MS = 100;
const QUIET_LONGEST_MS = 500;

/** Used where stdout is no terminal. */
export const DEFAULT_SIZE: Geometry = { cols: 80, rows: 24 };

export class Screen {
  /** Resolves when nobody reads stdout any more. */
  readonly broken: Promise<void>;
  readonly #modes = new TerminalModes();
  readonly #onInput: (bytes: Buffer) => void;
  #raw: RawMode | undefined;
  #isLeaving = false;
  #lastInputAt = 0;
  #written = 0n;
  #onBroken: () => void = () => undefined;

  /** `onInput` is given what is typed once `enterRaw` or `readInput` was called. */
  constructor(onInput: (bytes: Buffer) => void) {
    this.#onInput = onInput;
    this.broken = new Promise((resolve) => {
      this.#onBroken = resolve;
    });
    process.stdout.on('error', () => this.#onBroken());
    for (const stream of [process.stdout, process.stderr]) {
      if (stream.isTTY) {
        doNotBlock(stream);
      }
    }
  }

  get isTerminal(): boolean {
    return process.stdout.isTTY === true;
  }

  /** Undefined where stdout is no terminal. */
  get size(): Geometry | undefined {
    const { columns, rows } = process.stdout;
    return this.isTerminal && columns > 0 && rows > 0 ? { cols: columns, rows } : undefined;
  }

  /** Calls when the window changes size. */
  onResize(call: (size: Geometry) => void): void {
    process.stdout.on('resize', () => {
      const { size } = this;
      if (size !== undefined) {
        call(size);
      }
    });
  }

  /** Shows bytes. The promise says when the system has taken them; it never does once stdout is broken. */
  show(bytes: Buffer): void | Promise<void> {
    if (this.isTerminal) {
      this.#modes.feed(bytes);
    }
    this.#written += BigInt(bytes.length);
    const taken = new Promise<void>((resolve) => {
      process.stdout.write(bytes, (error) => {
        if (error === null || error === undefined) {
          resolve();
        } else {
          this.#onBroken();
        }
      });
    });
    const isTaken = process.stdout.writableLength === 0 && process.stdout.errored === null;
    return isTaken ? undefined : taken;
  }

  /** Takes the keyboard as it is, byte for byte and unechoed, where there is one. Returns whether there is. */
  enterRaw(): boolean {
    const { stdin } = process;
    this.#raw = stdin.isTTY === true ? enterRawMode(stdin.fd) : undefined;
    if (this.#raw === undefined) {
      return false;
    }
    stdin.on('data', this.#receive);
    return true;
  }

  /** Reads a stdin that is no terminal, to its end. */
  readInput(): void {
    process.stdin.on('error', () => undefined);
    process.stdin.on('data', this.#receive);
  }

  /** Stops listening for a while; what is typed waits in the system. */
  pauseInput(): void {
    process.stdin.pause();
  }

  resumeInput(): void {
    if (!this.#isLeaving) {
      process.stdin.resume();
    }
  }

  /**
   * Gives the terminal back as a shell expects it. What is still typed at it by then, answers to
   * queries in the output above all, is read and dropped, so that it never reaches the shell.
   */
  async leave(options: { readonly undoModes: boolean }): Promise<void> {
    this.#isLeaving = true;
    if (this.isTerminal && options.undoModes && this.#written > 0n) {
      process.stdout.write(this.#modes.undo());
    }
    if (this.#raw !== undefined) {
      process.stdin.resume();
      await this.#quiet();
      this.#raw.dropInput();
      this.#raw[Symbol.dispose]();
    }
    process.stdin.off('data', this.#receive);
    process.stdin.pause();
  }

  readonly #receive = (bytes: Buffer): void => {
    this.#lastInputAt = performance.now();
    if (!this.#isLeaving) {
      this.#onInput(bytes);
    }
  };

  async #quiet(): Promise<void> {
    const start = performance.now();
    this.#lastInputAt = start;
    for (let now = start; now - start < QUIET_LONGEST_MS; now = performance.now()) {
      const leftMs = this.#lastInputAt + QUIET_MS - now;
      if (leftMs <= 0) {
        return;
      }
      await sleep(leftMs);
    }
  }
}

/** Holds what is to be shown until the line above it is printed and the terminal is raw. */
export class Gate {
  #opened: Promise<void> | undefined;
  #open: () => void = () => undefined;

  constructor() {
    this.#opened = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  open(): void {
    this.#opened = undefined;
    this.#open();
  }

  pass(show: () => void | Promise<void>): void | Promise<void> {
    return this.#opened === undefined ? show() : this.#opened.then(show);
  }
}

/**
 * Node writes to a terminal in blocking calls: one that has been stopped would stop this process as
 * well, the detach keys included. There is no public call for it; without it only that case suffers.
 */
function doNotBlock(stream: object): void {
  const handle: unknown = Reflect.get(stream, '_handle');
  if (typeof handle === 'object' && handle !== null && 'setBlocking' in handle) {
    const { setBlocking } = handle;
    if (typeof setBlocking === 'function') {
      setBlocking.call(handle, false);
    }
  }
}
