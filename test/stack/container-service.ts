/** One service as a container: its ready line, its log, its end. */
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import type { Container, ContainerCreateOptions } from 'dockerode';
import { childrenOf } from './census.js';
import type { Engine } from './engine.js';
import { within } from './eventually.js';

const READY_MS = 30_000;
/** More than a service's own drain takes. */
const DRAIN_S = 20;

export class ContainerService {
  /** What it was made with. */
  readonly options: ContainerCreateOptions;
  readonly #container: Container;
  readonly #log: (text: string) => void;
  /** How many processes stand above the serving one: an init, and data's reaper. */
  readonly #above: number;
  #lives = false;

  private constructor(
    container: Container,
    options: ContainerCreateOptions,
    log: (text: string) => void,
    above: number,
  ) {
    this.#container = container;
    this.options = options;
    this.#log = log;
    this.#above = above;
  }

  /** Made, not yet started. `log` takes what it writes to stderr. */
  static async make(
    api: Engine,
    options: ContainerCreateOptions,
    log: (text: string) => void,
    above: number,
  ): Promise<ContainerService> {
    return new ContainerService(await api.createContainer(options), options, log, above);
  }

  /** Starts it, also again, and waits for its ready line. */
  async start(): Promise<void> {
    const stream = await this.#container.attach({ stream: true, stdout: true, stderr: true });
    const out = new PassThrough();
    const err = new PassThrough().setEncoding('utf8').on('data', this.#log);
    this.#container.modem.demuxStream(stream, out, err);
    stream.once('end', () => out.end());
    await this.#container.start();
    this.#lives = true;
    await within('the ready line', READY_MS, ready(out));
    out.resume();
  }

  get lives(): boolean {
    return this.#lives;
  }

  /** The process that serves, as this machine counts. */
  async pid(): Promise<number> {
    const { State } = await this.#container.inspect();
    let pid = State.Pid;
    for (let level = 0; level < this.#above; level += 1) {
      pid = childrenOf(pid)[0] ?? pid;
    }
    return pid;
  }

  /** Kills everything in it. */
  async crash(): Promise<void> {
    await this.#container.kill({ signal: 'SIGKILL' });
    await this.#container.wait();
    this.#lives = false;
  }

  /** Asks politely, then does not. Throws when it did not end by itself, and with success. */
  async end(): Promise<void> {
    if (!this.#lives) {
      return;
    }
    await this.#container.stop({ t: DRAIN_S });
    const { StatusCode } = (await this.#container.wait()) as { readonly StatusCode: number };
    this.#lives = false;
    if (StatusCode !== 0) {
      throw new Error(`the container ended with ${StatusCode}`);
    }
  }

  async pause(): Promise<void> {
    await this.#container.pause();
  }

  /** Does nothing where it is not paused, as a signal to a running process would. */
  async resume(): Promise<void> {
    const { State } = await this.#container.inspect();
    if (State.Paused) {
      await this.#container.unpause();
    }
  }

  /** Its address on a network, the network's gateway, and a process in its network namespace. */
  async place(network: string): Promise<{ address: string; gateway: string; pid: number }> {
    const { NetworkSettings, State } = await this.#container.inspect();
    const attached = NetworkSettings.Networks[network];
    return {
      address: attached?.IPAddress ?? '',
      gateway: attached?.Gateway ?? '',
      pid: State.Pid,
    };
  }

  async remove(): Promise<void> {
    await this.#container.remove({ force: true, v: true });
  }
}

/** The first line of stdout. A service that cannot start says why in the same place. */
async function ready(out: PassThrough): Promise<void> {
  for await (const line of createInterface({ input: out })) {
    const { failed } = JSON.parse(line) as { readonly failed?: string };
    if (failed !== undefined) {
      throw new Error(`did not start: ${failed}`);
    }
    return;
  }
  throw new Error('ended before it was ready');
}
