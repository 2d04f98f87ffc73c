/**
 * One service as a child process: started, watched, started again on the same port, drained.
 *
 *   starting ──ready──► serving ──died──► waiting ──► starting
 *                          └──drain──► draining ──► ended      died too often ──► given up
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { UnreachableError } from '#client/call-errors.js';
import { openLog, trimLog } from './log-files.js';

export interface ServiceSpec {
  /** As people know it, and as its log is called. */
  readonly name: string;
  /** Arguments of node. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly logFile: string;
  /** 0 takes a free one. */
  readonly preferredPort: number;
}

export interface ServiceEvents {
  /** Progress, for people. */
  note(text: string): void;
  /** The service runs, for the first time or again. */
  started(pid: number): void;
}

const HOST = '127.0.0.1';
const READY_MS = 20_000;
/** More than the longest drain of a service, which cuts what is left itself. */
const DRAIN_MS = 20_000;
/** A service that dies this often within the span is not going to stay. */
const RESTARTS_MAX = 5;
const RESTARTS_SPAN_MS = 60_000;
const RESTART_FIRST_MS = 100;
const RESTART_LONGEST_MS = 5_000;
const LOG_LOOK_MS = 30_000;

export class SupervisedService {
  /** Resolves when the service cannot be kept alive. */
  readonly gaveUp: Promise<Error>;
  readonly #spec: ServiceSpec;
  readonly #events: ServiceEvents;
  #child: ChildProcess;
  #port: number;
  #isDraining = false;

  private constructor(spec: ServiceSpec, child: ChildProcess, port: number, events: ServiceEvents) {
    this.#spec = spec;
    this.#child = child;
    this.#port = port;
    this.#events = events;
    events.started(this.pid);
    this.gaveUp = this.#keep();
  }

  /** Returns when the service is ready. Throws an `UnreachableError` with what it said when it is not. */
  static async start(spec: ServiceSpec, events: ServiceEvents): Promise<SupervisedService> {
    const { child, port } = await launch(spec, spec.preferredPort);
    return new SupervisedService(spec, child, port, events);
  }

  get name(): string {
    return this.#spec.name;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get endpoint(): string {
    return `${HOST}:${this.#port}`;
  }

  /** Asks it to drain and waits until it has ended; ends it when it does not. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    await endChild(this.#child);
  }

  async #keep(): Promise<Error> {
    const deaths: number[] = [];
    setInterval(() => trimLog(this.#spec.logFile), LOG_LOOK_MS).unref();
    for (;;) {
      await exited(this.#child);
      const now = performance.now();
      deaths.push(now);
      const recent = deaths.filter((at) => now - at < RESTARTS_SPAN_MS).length;
      if (this.#isDraining) {
        return new Error(`${this.#spec.name} was drained`);
      }
      if (recent > RESTARTS_MAX) {
        return new UnreachableError(
          this.#spec.name,
          `it ended ${recent} times within a minute; see ${this.#spec.logFile}`,
        );
      }
      const delayMs = Math.min(RESTART_FIRST_MS * 2 ** (recent - 1), RESTART_LONGEST_MS);
      this.#events.note(`${this.#spec.name} ended (${endWords(this.#child)}); starting it again`);
      await sleep(delayMs);
      await this.#again();
    }
  }

  /** A start that fails counts as one more death. */
  async #again(): Promise<void> {
    if (this.#isDraining) {
      return;
    }
    try {
      const { child, port } = await launch(this.#spec, this.#port);
      this.#child = child;
      this.#port = port;
      this.#events.started(this.pid);
      if (this.#isDraining) {
        await endChild(child);
      }
    } catch (error) {
      if (!(error instanceof UnreachableError)) {
        throw error;
      }
      this.#events.note(error.message);
    }
  }
}

interface Launched {
  readonly child: ChildProcess;
  readonly port: number;
}

/** In a session of its own: Ctrl-C is for us to pass on, in the right order. */
async function launch(spec: ServiceSpec, port: number): Promise<Launched> {
  const log = openLog(spec.logFile);
  const child = spawn(process.execPath, spec.args, {
    cwd: spec.cwd,
    detached: true,
    env: { ...process.env, ...spec.env, WHEELHOUSE_LISTEN: `${HOST}:${port}` },
    stdio: ['ignore', 'pipe', log],
  });
  closeSync(log);
  const overdue = setTimeout(() => child.kill('SIGKILL'), READY_MS);
  try {
    return { child, port: await readyPort(spec, child) };
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  } finally {
    clearTimeout(overdue);
  }
}

/** The service says one JSON line on stdout: that it is ready, or why it will not be. */
async function readyPort(spec: ServiceSpec, child: ChildProcess): Promise<number> {
  const { stdout } = child;
  child.on('error', () => undefined);
  if (stdout !== null) {
    for await (const line of createInterface({ input: stdout })) {
      stdout.resume();
      const said = parseLine(line);
      if (typeof said['port'] === 'number') {
        return said['port'];
      }
      throw new UnreachableError(spec.name, String(said['failed'] ?? line));
    }
  }
  throw new UnreachableError(spec.name, `it ended before it was ready; see ${spec.logFile}`);
}

function parseLine(line: string): Record<string, unknown> {
  try {
    return { ...Object(JSON.parse(line)) };
  } catch {
    return { failed: line };
  }
}

async function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    await once(child, 'exit');
  }
}

async function endChild(child: ChildProcess): Promise<void> {
  child.kill('SIGTERM');
  const overdue = setTimeout(() => child.kill('SIGKILL'), DRAIN_MS);
  await exited(child);
  clearTimeout(overdue);
}

function endWords({ exitCode, signalCode }: ChildProcess): string {
  return signalCode === null ? `exit ${exitCode}` : `${signalCode}`;
}
