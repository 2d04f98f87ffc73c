/** The people and programs of the scenarios: an operator, an agent at work, a look at its terminal. */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { LoadedIdentity } from '#chassis/identity-files.js';
import { AgentBind } from '#client/agent-bind.js';
import { connect, type DataConnection } from '#client/connect.js';
import { ControlBind } from '#client/control-bind.js';
import { Possession } from '#client/possession.js';
import { type Designation, Presentation, type PresentationTerms } from '#client/presentation.js';
import type { StreamEnd } from '#client/stream-end.js';
import { designationOf, Workers } from '#client/workers.js';
import { eventually } from '../stack/eventually.js';
import type { Stack } from '../stack/stack.js';

/** A bound operator, with everything one may ask. */
export class Operator implements AsyncDisposable {
  readonly stack: Stack;
  readonly bind: ControlBind;
  readonly workers: Workers;
  readonly data: DataConnection;
  readonly #rootPem: string;

  private constructor(stack: Stack, bind: ControlBind, data: DataConnection, rootPem: string) {
    this.stack = stack;
    this.bind = bind;
    this.workers = new Workers(bind.authority);
    this.data = data;
    this.#rootPem = rootPem;
  }

  static async at(stack: Stack, name = 'operator'): Promise<Operator> {
    const identity = await stack.identityFor('human-control', name);
    const bind = await ControlBind.open(stack.endpoints.authority, identity);
    const data = connect(stack.endpoints.data, 'data', identity);
    return new Operator(stack, bind, data, identity.rootPem);
  }

  /** Opens a worker in the stack's own folder. */
  async opens(name: string): Promise<Designation> {
    const worker = await this.workers.open({ name, workspace: this.stack.workspace });
    return designationOf(worker);
  }

  async identityOf(actor: string): Promise<LoadedIdentity> {
    return await this.workers.issueIdentity(actor, this.#rootPem);
  }

  async looksAt(worker: Designation, terms: Omit<PresentationTerms, 'worker'> = {}): Promise<Look> {
    return await Look.open(this.data, { worker, ...terms });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.bind.close();
    this.data[Symbol.dispose]();
  }
}

/** Output as it arrived. */
export class Received {
  readonly #hash = createHash('sha256');
  readonly #kept: Buffer[] = [];
  bytes = 0n;

  take(chunk: Buffer): void {
    this.#hash.update(chunk);
    this.bytes += BigInt(chunk.length);
    // Enough to look at; a hash is enough for the rest.
    if (this.bytes < 1_000_000n) {
      this.#kept.push(Buffer.from(chunk));
    }
  }

  get text(): string {
    return Buffer.concat(this.#kept).toString('latin1');
  }

  get sha256(): string {
    return this.#hash.copy().digest('hex');
  }
}

/** A look at a terminal, with everything it was shown. */
export class Look {
  readonly received: Received;
  readonly presentation: Presentation;
  #stalled: { readonly promise: Promise<void>; readonly release: () => void } | undefined;

  private constructor(received: Received, presentation: Presentation) {
    this.received = received;
    this.presentation = presentation;
  }

  static async open(data: DataConnection, terms: PresentationTerms): Promise<Look> {
    const received = new Received();
    let look: Look | undefined;
    const presentation = await Presentation.open(data, terms, {
      take: (chunk) => {
        received.take(chunk);
        return look?.stalling;
      },
    });
    look = new Look(received, presentation);
    return look;
  }

  get stalling(): Promise<void> | undefined {
    return this.#stalled?.promise;
  }

  /** Takes nothing more until `goesOn`. */
  stalls(): void {
    let release = (): void => undefined;
    const promise = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#stalled = { promise, release };
  }

  /** Waits until nothing more comes: the transport is full, and the terminal waits for this reader. */
  async standsStill(): Promise<void> {
    await eventually('the terminal waits for the reader', async () => {
      const before = this.received.bytes;
      await delay(200);
      return this.received.bytes === before;
    });
  }

  goesOn(): void {
    this.#stalled?.release();
    this.#stalled = undefined;
  }

  async shows(pattern: RegExp, deadlineMs?: number): Promise<void> {
    await eventually(
      `the look shows ${pattern}`,
      () => pattern.test(this.received.text),
      deadlineMs,
    );
  }

  get ended(): Promise<StreamEnd> {
    return this.presentation.ended;
  }
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly isHeadless?: boolean;
}

/** An agent at work: bound, seated, its program in a terminal. */
export class AgentRun implements AsyncDisposable {
  readonly bind: AgentBind;
  readonly possession: Possession;
  readonly received: Received;
  readonly #data: DataConnection;

  private constructor(
    bind: AgentBind,
    data: DataConnection,
    possession: Possession,
    received: Received,
  ) {
    this.bind = bind;
    this.#data = data;
    this.possession = possession;
    this.received = received;
  }

  static async starts(
    stack: Stack,
    identity: LoadedIdentity,
    worker: Designation,
    argv: readonly string[],
    options: RunOptions = {},
  ): Promise<AgentRun> {
    const bind = await boundAgent(stack, identity);
    try {
      const endpoint = await new Workers(bind.authority).occupy(worker);
      return await AgentRun.#possesses(bind, endpoint, worker, argv, options);
    } catch (error) {
      // Who could not begin does not stay: a seat would be theirs for as long as they are present.
      bind.close();
      throw error;
    }
  }

  static async #possesses(
    bind: AgentBind,
    endpoint: string,
    worker: Designation,
    argv: readonly string[],
    options: RunOptions,
  ): Promise<AgentRun> {
    const data = connect(endpoint, 'data', bind.identity);
    const received = new Received();
    const possession = await Possession.open(
      data,
      {
        worker,
        argv,
        env: options.env ?? {},
        geometry: { rows: 24, cols: 80 },
        isHeadless: options.isHeadless ?? false,
      },
      { take: (chunk) => received.take(chunk) },
    ).catch((error: unknown) => {
      data[Symbol.dispose]();
      throw error;
    });
    return new AgentRun(bind, data, possession, received);
  }

  async shows(pattern: RegExp, deadlineMs?: number): Promise<void> {
    await eventually(
      `the agent sees ${pattern}`,
      () => pattern.test(this.received.text),
      deadlineMs,
    );
  }

  get ended(): Promise<StreamEnd> {
    return this.possession.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.possession.end();
    await this.possession.ended;
    this.bind.close();
    this.#data[Symbol.dispose]();
  }
}

/** An agent with a certificate of its own run. */
export async function boundAgent(stack: Stack, identity: LoadedIdentity): Promise<AgentBind> {
  const first = connect(stack.endpoints.authority, 'authority', identity);
  const run = await new Workers(first).issueRunCertificate(identity.rootPem);
  first[Symbol.dispose]();
  return await AgentBind.open(stack.endpoints.authority, run);
}

/** The shell command that prints a file byte for byte and ends. */
export function raw(command: string): readonly string[] {
  return ['sh', '-c', `stty raw -echo; ${command}`];
}
