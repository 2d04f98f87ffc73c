/** Where an observer is tried: a stack of its own, an operator, and workers whose agents run programs. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { identityPaths, type LoadedIdentity } from '#chassis/identity-files.js';
import { connect } from '#client/connect.js';
import type { Designation } from '#client/presentation.js';
import { Workers } from '#client/workers.js';
import { AgentRun, Operator, raw } from '../scenarios/actors.js';
import { eventually, within } from '../stack/eventually.js';
import { startProcesses } from '../stack/processes.js';
import type { Stack } from '../stack/stack.js';
import type { ObserverCommand } from './observers.js';

export type TranscriptEvent = Readonly<Record<string, unknown>>;

export interface Observed {
  readonly code: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
  /** As it was written. */
  readonly transcript: string;
}

const OPERATOR = 'operator';
/** An observer that has been told everything ends; one whose service is gone waits for its deadlines. */
const ENDED_MS = 40_000;

export class Seat implements AsyncDisposable {
  readonly stack: Stack;
  readonly observer: ObserverCommand;
  #operator: Operator;
  #observed = 0;

  private constructor(stack: Stack, operator: Operator, observer: ObserverCommand) {
    this.stack = stack;
    this.#operator = operator;
    this.observer = observer;
  }

  static async open(observer: ObserverCommand): Promise<Seat> {
    const stack = await startProcesses();
    return new Seat(stack, await Operator.at(stack, OPERATOR), observer);
  }

  get operator(): Operator {
    return this.#operator;
  }

  /** A worker whose agent runs a program that begins when it is told. */
  async works(name: string, script: string): Promise<Working> {
    const worker = await this.operator.opens(name);
    const identity = await this.operator.identityOf(name);
    const go = join(this.stack.workspace, `go-${name}`);
    const argv = raw(`until [ -e ${go} ]; do sleep 0.02; done; ${script}`);
    const run = await AgentRun.starts(this.stack, identity, worker, argv, { isHeadless: true });
    return new Working(worker, run, () => writeFileSync(go, ''));
  }

  /** Puts a file where programs of this stack find it by the path that is returned. */
  file(name: string, content: Uint8Array): string {
    const path = join(this.stack.workspace, name);
    writeFileSync(path, content);
    return path;
  }

  /** Keeps an identity where observers find it. */
  keep(role: string, name: string, { identity }: LoadedIdentity): void {
    const paths = identityPaths(this.stack.stateDir, role, name);
    mkdirSync(dirname(paths.certificate), { recursive: true });
    writeFileSync(paths.certificate, identity.certificatePem);
    writeFileSync(paths.key, identity.keyPem);
  }

  /** The same deployment's state, seen by somebody who was told other endpoints. */
  misled(endpoints: Readonly<Record<'authority' | 'data', string>>): string {
    const folder = join(this.stack.workspace, 'misled');
    if (!existsSync(folder)) {
      mkdirSync(folder);
      for (const name of ['ca', 'identities']) {
        symlinkSync(join(this.stack.stateDir, name), join(folder, name));
      }
    }
    writeFileSync(join(folder, 'endpoints.json'), JSON.stringify(endpoints));
    return folder;
  }

  /** Runs what is given while the operator of this seat is away, and brings them back. */
  async withoutOperator(act: () => Promise<void>): Promise<void> {
    await this.#operator[Symbol.asyncDispose]();
    try {
      await this.#nobodyIsBound();
      await act();
    } finally {
      await this.returns();
    }
  }

  /** Binds the operator anew, once authority has seen the last one leave. */
  async returns(): Promise<void> {
    await this.#operator[Symbol.asyncDispose]();
    this.#operator = await eventually('the operator is back', () =>
      Operator.at(this.stack, OPERATOR),
    );
  }

  async #nobodyIsBound(): Promise<void> {
    const identity = await this.stack.identityFor('human-control', OPERATOR);
    using authority = connect(this.stack.endpoints.authority, 'authority', identity);
    await eventually('nobody is bound', async () => {
      const failure = await new Workers(authority).list().catch((error: unknown) => String(error));
      return String(failure).includes('control-channel-not-bound');
    });
  }

  /** Starts the observer as the operator of this seat, unless the arguments say otherwise. */
  observes(...args: readonly string[]): Observing {
    this.#observed += 1;
    const path = join(this.stack.workspace, `transcript-${this.#observed}`);
    const as = args.includes('--as') ? [] : ['--as', `human-control/${OPERATOR}`];
    const state = args.includes('--state') ? [] : ['--state', this.stack.stateDir];
    const { file, args: command, env } = this.observer;
    const child = spawn(file, [...command, ...args, ...as, ...state, '--transcript', path], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return new Observing(child, path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#operator[Symbol.asyncDispose]();
    await this.stack[Symbol.asyncDispose]();
  }
}

/** An agent at work at a worker of its own. */
export class Working implements AsyncDisposable {
  readonly worker: Designation;
  readonly run: AgentRun;
  readonly tell: () => void;

  constructor(worker: Designation, run: AgentRun, tell: () => void) {
    this.worker = worker;
    this.run = run;
    this.tell = tell;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.run[Symbol.asyncDispose]();
  }
}

/** An observer that runs. What it prints is not read before it is asked for. */
export class Observing {
  readonly #child: ChildProcess;
  readonly #path: string;
  readonly #exit: Promise<unknown>;
  readonly #stdout: Buffer[] = [];
  #stderr = '';
  #isRead = false;

  constructor(child: ChildProcess, path: string) {
    this.#child = child;
    this.#path = path;
    this.#exit = once(child, 'close');
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
  }

  /** Waits until its transcript has an event of this name. */
  async tells(event: string): Promise<void> {
    await eventually(
      `the observer tells ${event}: ${this.#stderr}`,
      () => this.transcript.includes(`{"event":"${event}"`),
      ENDED_MS,
    );
  }

  /** Reads its stdout until these bytes are there. */
  async prints(text: string): Promise<void> {
    this.#read();
    await eventually(`the observer prints ${text}`, () =>
      Buffer.concat(this.#stdout).includes(text),
    );
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Its stdout has no reader any more. */
  closesStdout(): void {
    this.#child.stdout?.destroy();
  }

  /** Reads it to its end. */
  async ended(): Promise<Observed> {
    this.#read();
    await within('the end of the observer', ENDED_MS, this.#exit).catch((error: unknown) => {
      this.#child.kill('SIGKILL');
      throw error;
    });
    return {
      code: this.#child.exitCode,
      stdout: Buffer.concat(this.#stdout),
      stderr: this.#stderr,
      transcript: this.transcript,
    };
  }

  get transcript(): string {
    return existsSync(this.#path) ? readFileSync(this.#path, 'utf8') : '';
  }

  #read(): void {
    if (!this.#isRead) {
      this.#isRead = true;
      this.#child.stdout?.on('data', (chunk: Buffer) => this.#stdout.push(chunk));
    }
  }
}
