/** One service as a process: its ready line, its log, its end. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { childrenOf, isAlive } from './census.js';
import { eventually, within } from './eventually.js';

export interface ServiceSpec {
  readonly name: string;
  /** Arguments of node. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Whether the service runs below a reaper: then it is the reaper's one child. */
  readonly isReaped: boolean;
}

const READY_MS = 20_000;
const DRAIN_MS = 20_000;

export class ServiceProcess {
  readonly #spec: ServiceSpec;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  /** The port from the ready line. */
  readonly port: number;
  readonly #servingPid: number;

  private constructor(spec: ServiceSpec, child: ChildProcess, port: number) {
    this.#spec = spec;
    this.#child = child;
    this.port = port;
    this.#ended = child.exitCode === null ? once(child, 'exit') : Promise.resolve();
    const pid = child.pid ?? 0;
    this.#servingPid = spec.isReaped ? (childrenOf(pid)[0] ?? pid) : pid;
  }

  /** Starts it and waits for its ready line. `log` takes what it writes to stderr. */
  static async start(spec: ServiceSpec, log: (text: string) => void): Promise<ServiceProcess> {
    const child = spawn(process.execPath, spec.args, {
      env: { ...spec.env },
      cwd: spec.cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stderr?.setEncoding('utf8').on('data', log);
    const port = await within(`${spec.name} ready`, READY_MS, readyPort(spec.name, child)).catch(
      (error: unknown) => {
        child.kill('SIGKILL');
        throw error;
      },
    );
    return new ServiceProcess(spec, child, port);
  }

  /** The process that serves. Throws when it has ended. */
  get pid(): number {
    if (!isAlive(this.#servingPid)) {
      throw new Error(`${this.#spec.name} has ended`);
    }
    return this.#servingPid;
  }

  get lives(): boolean {
    return isAlive(this.#servingPid);
  }

  /** To the serving process; its reaper sees it die and cleans up. */
  signal(name: NodeJS.Signals): void {
    if (isAlive(this.#servingPid)) {
      process.kill(this.#servingPid, name);
    }
  }

  /** Waits for the serving process alone: what it left behind may take its reaper a while. */
  async crash(): Promise<void> {
    this.signal('SIGKILL');
    await eventually(`${this.#spec.name} killed`, () => !isAlive(this.#servingPid));
  }

  /** Waits until nothing of it is left, its reaper included. */
  async ended(): Promise<void> {
    await within(`the end of ${this.#spec.name}`, DRAIN_MS, this.#ended);
  }

  /** Asks politely, then does not. */
  async end(): Promise<void> {
    this.signal('SIGCONT');
    this.signal('SIGTERM');
    await this.ended().catch(async (error: unknown) => {
      this.signal('SIGKILL');
      this.#child.kill('SIGKILL');
      await this.#ended;
      throw error;
    });
  }
}

/** The first line of stdout. A service that cannot start says why in the same place. */
async function readyPort(name: string, child: ChildProcess): Promise<number> {
  if (child.stdout === null) {
    throw new Error('stdout is a pipe');
  }
  for await (const line of createInterface({ input: child.stdout })) {
    const ready = JSON.parse(line) as { port?: number; failed?: string };
    if (ready.port === undefined) {
      throw new Error(`${name} did not start: ${ready.failed ?? line}`);
    }
    child.stdout.resume();
    return ready.port;
  }
  throw new Error(`${name} ended before it was ready`);
}
