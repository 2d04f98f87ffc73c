/**
 * The stack in the test's own process: the services assembled as their processes assemble them.
 *
 * Loaded from compiled output, so that a mutant can be loaded beside the product. What belongs to a
 * process is absent: no reaper, no settings from an environment, no signal, no memory of its own.
 */
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { pino } from 'pino';
import type * as authorityConfig from '../../services/authority/config.js';
import type * as authorityStart from '../../services/authority/start.js';
import type * as dataConfig from '../../services/data/config.js';
import type * as dataStart from '../../services/data/start.js';
import { announceEndpoints } from './announce.js';
import { Gates } from './gates.js';
import { HousedStack } from './housed-stack.js';
import { type Party, type Plane, planes, type Stack, type StackOptions } from './stack.js';
import { NODE_NAME, StackHome } from './stack-home.js';

/** Starts authority, then data. */
export async function startInProcess(options: StackOptions = {}): Promise<Stack> {
  const stack = new InProcessStack(await StackHome.make(options), options);
  try {
    await stack.begin();
    return stack;
  } catch (error) {
    await stack[Symbol.asyncDispose]().catch(() => undefined);
    throw error;
  }
}

/** A plane that has been started here. */
interface Life {
  readonly ready: { readonly port: number };
  drain(): Promise<void>;
  abort(): Promise<void> | void;
}

class InProcessStack extends HousedStack implements Stack {
  readonly depth = 'in-process';
  readonly endpoints = { authority: '', data: '' };
  readonly #options: StackOptions;
  readonly #running = new Map<Plane, Life>();
  readonly #ports = { authority: 0, data: 0 };
  #gates: Gates | undefined;

  constructor(home: StackHome, options: StackOptions) {
    super(home);
    this.#options = options;
  }

  async begin(): Promise<void> {
    this.#gates = await Gates.open((plane) => `127.0.0.1:${this.#ports[plane]}`);
    for (const plane of planes) {
      this.endpoints[plane] = this.#gates.endpoint('client', plane);
      await this.restart(plane);
    }
    announceEndpoints(this.stateDir, this.endpoints);
    await this.joined();
  }

  async crash(plane: Plane): Promise<void> {
    const life = this.#life(plane);
    this.#running.delete(plane);
    await life.abort();
  }

  async drain(plane: Plane): Promise<void> {
    const life = this.#life(plane);
    await life.drain();
    this.#running.delete(plane);
  }

  async restart(plane: Plane): Promise<void> {
    this.home.starts();
    const life = plane === 'authority' ? await this.#authority() : await this.#data();
    this.#running.set(plane, life);
    this.#ports[plane] = life.ready.port;
  }

  pause(plane: Plane): Promise<void> {
    this.#gates?.pause(plane);
    return Promise.resolve();
  }

  resume(plane: Plane): Promise<void> {
    this.#gates?.resume(plane);
    return Promise.resolve();
  }

  cut(one: Party, other: Party): Promise<void> {
    this.#gates?.cut(one, other);
    return Promise.resolve();
  }

  heal(one: Party, other: Party): Promise<void> {
    this.#gates?.heal(one, other);
    return Promise.resolve();
  }

  override moveClock(plane: Plane): void {
    throw new Error(`${plane} has the clock of the test here`);
  }

  lives(plane: Plane): boolean {
    return this.#running.has(plane);
  }

  pid(plane: Plane): number {
    throw new Error(`${plane} has no process of its own here`);
  }

  /** Data first: it tells authority what it ends. */
  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = [];
    for (const plane of [...planes].reverse()) {
      this.#gates?.resume(plane);
      await this.#running
        .get(plane)
        ?.drain()
        .catch((error: unknown) => failures.push(error));
    }
    await this.#gates?.[Symbol.asyncDispose]();
    await this.home.leave();
    if (failures.length > 0) {
      throw failures[0];
    }
  }

  #life(plane: Plane): Life {
    const life = this.#running.get(plane);
    if (life === undefined) {
      throw new Error(`${plane} does not run`);
    }
    return life;
  }

  async #authority(): Promise<Life> {
    const { loadSettings } = await this.#load<typeof authorityConfig>('authority', 'config');
    const { start } = await this.#load<typeof authorityStart>('authority', 'start');
    const settings = loadSettings(this.#environment('authority', {}));
    return await start({ settings, logger: this.#logger('authority') });
  }

  async #data(): Promise<Life> {
    const { loadConfig } = await this.#load<typeof dataConfig>('data', 'config');
    const { start } = await this.#load<typeof dataStart>('data', 'start');
    const config = loadConfig(
      this.#environment('data', {
        WHEELHOUSE_NODE: NODE_NAME,
        WHEELHOUSE_AUTHORITY: this.#gates?.endpoint('data', 'authority') ?? '',
        WHEELHOUSE_ADVERTISE: this.endpoints.data,
      }),
    );
    return await start(config, this.#logger('data'));
  }

  /** One module of a service, from the compiled output this stack is about. */
  async #load<Module>(plane: Plane, name: string): Promise<Module> {
    const path = join(this.home.distDir, 'services', plane, `${name}.js`);
    return (await import(pathToFileURL(path).href)) as Module;
  }

  #environment(plane: Plane, own: Readonly<Record<string, string>>): Record<string, string> {
    return {
      WHEELHOUSE_STATE: this.stateDir,
      WHEELHOUSE_LISTEN: `127.0.0.1:${this.#ports[plane]}`,
      ...own,
      ...this.#options.settings?.[plane],
    };
  }

  #logger(plane: Plane) {
    const lines = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        this.home.hears(plane, chunk.toString());
        done();
      },
    });
    return pino({ level: 'debug', base: { service: plane } }, lines);
  }
}
