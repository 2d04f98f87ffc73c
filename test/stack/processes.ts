/** The stack as real processes on this machine, from compiled output, on free ports of loopback. */
import { join } from 'node:path';
import { announceEndpoints } from './announce.js';
import { isStopped } from './census.js';
import { eventually } from './eventually.js';
import { Gates } from './gates.js';
import { HousedStack } from './housed-stack.js';
import { ServiceProcess, type ServiceSpec } from './service-process.js';
import { type Party, type Plane, planes, type Stack, type StackOptions } from './stack.js';
import { NODE_NAME, StackHome } from './stack-home.js';

/** Starts authority, then data. */
export async function startProcesses(options: StackOptions = {}): Promise<Stack> {
  const stack = new ProcessStack(await StackHome.make(options), options);
  try {
    await stack.begin();
    return stack;
  } catch (error) {
    await stack[Symbol.asyncDispose]().catch(() => undefined);
    throw error;
  }
}

class ProcessStack extends HousedStack implements Stack {
  readonly depth = 'processes';
  readonly endpoints = { authority: '', data: '' };
  readonly #options: StackOptions;
  readonly #running = new Map<Plane, ServiceProcess>();
  #gates: Gates | undefined;

  constructor(home: StackHome, options: StackOptions) {
    super(home);
    this.#options = options;
  }

  async begin(): Promise<void> {
    if (this.#options.isCuttable === true) {
      this.#gates = await Gates.open((plane) => this.#listens(plane));
    }
    for (const plane of planes) {
      await this.restart(plane);
    }
    announceEndpoints(this.stateDir, this.endpoints);
    await this.joined();
  }

  async crash(plane: Plane): Promise<void> {
    await this.#service(plane).crash();
  }

  async drain(plane: Plane): Promise<void> {
    await this.#service(plane).end();
  }

  async restart(plane: Plane): Promise<void> {
    await this.#running.get(plane)?.ended();
    this.home.starts();
    const service = await ServiceProcess.start(this.#spec(plane), (text) => {
      this.home.hears(plane, text);
    });
    this.#running.set(plane, service);
    this.endpoints[plane] = this.#gates?.endpoint('client', plane) ?? this.#listens(plane);
  }

  async pause(plane: Plane): Promise<void> {
    const service = this.#service(plane);
    service.signal('SIGSTOP');
    await eventually(`${plane} is stopped`, () => isStopped(service.pid));
  }

  resume(plane: Plane): Promise<void> {
    this.#service(plane).signal('SIGCONT');
    return Promise.resolve();
  }

  cut(one: Party, other: Party): Promise<void> {
    this.#cuttable().cut(one, other);
    return Promise.resolve();
  }

  heal(one: Party, other: Party): Promise<void> {
    this.#cuttable().heal(one, other);
    return Promise.resolve();
  }

  lives(plane: Plane): boolean {
    return this.#running.get(plane)?.lives === true;
  }

  pid(plane: Plane): number {
    return this.#service(plane).pid;
  }

  /** Data first: it tells authority what it ends. Then nothing may be left. */
  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = [];
    for (const plane of [...planes].reverse()) {
      await this.#running
        .get(plane)
        ?.end()
        .catch((error: unknown) => failures.push(error));
    }
    await this.#gates?.[Symbol.asyncDispose]();
    await this.home.leave();
    if (failures.length > 0) {
      throw failures[0];
    }
  }

  #service(plane: Plane): ServiceProcess {
    const service = this.#running.get(plane);
    if (service === undefined) {
      throw new Error(`${plane} was never started`);
    }
    return service;
  }

  #listens(plane: Plane): string {
    return `127.0.0.1:${this.#running.get(plane)?.port ?? 0}`;
  }

  #cuttable(): Gates {
    if (this.#gates === undefined) {
      throw new Error('a stack that is to be cut is started isCuttable');
    }
    return this.#gates;
  }

  #spec(plane: Plane): ServiceSpec {
    const { distDir, folder } = this.home;
    const main = join(distDir, 'services', plane, 'main.js');
    const reaper = join(distDir, 'services', 'data', 'reaper.js');
    return {
      name: plane,
      args: plane === 'data' ? [reaper, '--', main] : [main],
      cwd: folder,
      isReaped: plane === 'data',
      env: {
        ...this.home.environment(),
        WHEELHOUSE_STATE: this.stateDir,
        WHEELHOUSE_LISTEN: this.#listens(plane),
        WHEELHOUSE_LOG_LEVEL: 'debug',
        ...(plane === 'data' ? this.#dataEnvironment() : {}),
        ...this.home.clocks?.environment(plane),
        ...this.#options.settings?.[plane],
      },
    };
  }

  #dataEnvironment(): Record<string, string> {
    const authority = this.#gates?.endpoint('data', 'authority') ?? this.#listens('authority');
    const advertise = this.#gates?.endpoint('client', 'data');
    return {
      WHEELHOUSE_NODE: NODE_NAME,
      WHEELHOUSE_AUTHORITY: authority,
      ...(advertise === undefined ? {} : { WHEELHOUSE_ADVERTISE: advertise }),
    };
  }
}
