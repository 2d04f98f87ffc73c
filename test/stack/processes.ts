/** The stack as real processes on this machine, from compiled output, on free ports of loopback. */
import { AssertionError } from 'node:assert';
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { clientCredentials } from '#chassis/grpc-client.js';
import { announceEndpoints } from './announce.js';
import { processesOf, STACK_VARIABLE } from './census.js';
import { type CliCommand, type CliOptions, runCli, startCli } from './cli-process.js';
import { eventually } from './eventually.js';
import { ServiceProcess, type ServiceSpec } from './service-process.js';
import { type Plane, planes, type Stack } from './stack.js';
import { ensureIdentity, mintStateFolder } from './state-folder.js';

export interface StackOptions {
  /** Compiled output to run: the product's own, or a mutant's. */
  readonly distDir?: string;
  /** How long what was started may take to be gone at the end, in ms. */
  readonly leftMs?: number;
  /** Settings of a plane, by environment variable. */
  readonly settings?: Partial<Readonly<Record<Plane, Readonly<Record<string, string>>>>>;
}

const checkout = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** The product's own compiled output, from the sources as from dist. */
export const ownDist = checkout.endsWith('/dist') ? checkout : join(checkout, 'dist');

/** What data logs when authority has answered its inventory. */
const JOINED = 'authority answers';
const NODE_NAME = 'local';
/** A leaving program has 2 s, its killing 8 s at most. */
const LEFT_MS_DEFAULT = 10_000;

/** Starts authority, then data. */
export async function startProcesses(options: StackOptions = {}): Promise<Stack> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'wh-')));
  const stateDir = join(folder, 'state');
  mkdirSync(join(folder, 'workspace'));
  await mintStateFolder(stateDir, NODE_NAME);
  const stack = new ProcessStack(folder, options);
  try {
    await stack.begin();
    return stack;
  } catch (error) {
    await stack[Symbol.asyncDispose]().catch(() => undefined);
    throw error;
  }
}

class ProcessStack implements Stack {
  readonly stateDir: string;
  readonly workspace: string;
  readonly endpoints = { authority: '', data: '' };
  readonly #folder: string;
  readonly #distDir: string;
  readonly #settings: NonNullable<StackOptions['settings']>;
  readonly #leftMs: number;
  readonly #running = new Map<Plane, ServiceProcess>();
  readonly #logs = { authority: '', data: '' };
  #joinedFrom = 0;

  constructor(folder: string, options: StackOptions) {
    this.#folder = folder;
    this.#distDir = options.distDir ?? ownDist;
    this.#settings = options.settings ?? {};
    this.#leftMs = options.leftMs ?? LEFT_MS_DEFAULT;
    this.stateDir = join(folder, 'state');
    this.workspace = join(folder, 'workspace');
  }

  async begin(): Promise<void> {
    for (const plane of planes) {
      await this.restart(plane);
    }
    announceEndpoints(this.stateDir, this.endpoints);
    await this.joined();
  }

  identityFor(role: Parameters<Stack['identityFor']>[0], name: string) {
    return ensureIdentity(this.stateDir, role, name);
  }

  async credentialsFor(role: Parameters<Stack['identityFor']>[0], name: string, plane: Plane) {
    const { identity, rootPem } = await this.identityFor(role, name);
    return clientCredentials(identity, rootPem, { plane });
  }

  async crash(plane: Plane): Promise<void> {
    await this.#service(plane).crash();
  }

  async drain(plane: Plane): Promise<void> {
    await this.#service(plane).end();
  }

  async restart(plane: Plane): Promise<void> {
    await this.#running.get(plane)?.ended();
    this.#joinedFrom = this.#logs.data.length;
    const service = await ServiceProcess.start(this.#spec(plane), (text) => {
      this.#logs[plane] += text;
    });
    this.#running.set(plane, service);
    this.endpoints[plane] = `127.0.0.1:${service.port}`;
  }

  async joined(): Promise<void> {
    await eventually('data has found authority', () => {
      return this.#logs.data.includes(JOINED, this.#joinedFrom);
    });
  }

  pause(plane: Plane): void {
    this.#service(plane).signal('SIGSTOP');
  }

  resume(plane: Plane): void {
    this.#service(plane).signal('SIGCONT');
  }

  pid(plane: Plane): number {
    return this.#service(plane).pid;
  }

  log(plane: Plane): string {
    return this.#logs[plane];
  }

  wheelhouse(args: readonly string[], options: CliOptions = {}) {
    return runCli(this.#command(args, options), options);
  }

  start(args: readonly string[], options: CliOptions = {}) {
    return startCli(this.#command(args, options), options);
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
    const left = await eventually(
      'no process left',
      () => {
        return processesOf(this.#folder).length === 0;
      },
      this.#leftMs,
    ).then(
      () => [],
      () => processesOf(this.#folder),
    );
    for (const { pid } of left) {
      kill(pid);
    }
    rmSync(this.#folder, { recursive: true, force: true });
    if (left.length > 0) {
      const list = left.map(({ pid, command }) => `${pid} ${command}`).join('\n');
      throw new AssertionError({ message: `left behind by the stack:\n${list}` });
    }
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

  #spec(plane: Plane): ServiceSpec {
    const main = join(this.#distDir, 'services', plane, 'main.js');
    const reaper = join(this.#distDir, 'services', 'data', 'reaper.js');
    const [, port = '0'] = this.endpoints[plane].split(':');
    return {
      name: plane,
      args: plane === 'data' ? [reaper, '--', main] : [main],
      cwd: this.#folder,
      isReaped: plane === 'data',
      env: {
        ...this.#environment(),
        WHEELHOUSE_STATE: this.stateDir,
        WHEELHOUSE_LISTEN: `127.0.0.1:${port}`,
        WHEELHOUSE_LOG_LEVEL: 'debug',
        ...(plane === 'data'
          ? { WHEELHOUSE_NODE: NODE_NAME, WHEELHOUSE_AUTHORITY: this.endpoints.authority }
          : {}),
        ...this.#settings[plane],
      },
    };
  }

  #command(args: readonly string[], { env, cwd }: CliOptions): CliCommand {
    return {
      args: [join(this.#distDir, 'clients', 'cli', 'main.js'), ...args],
      cwd: cwd ?? this.workspace,
      env: { ...this.#environment(), WHEELHOUSE_STATE: this.stateDir, NO_COLOR: '1', ...env },
    };
  }

  /** What a login would have, and the mark by which what is left of it is found. */
  #environment(): Record<string, string> {
    const { PATH = '/usr/bin:/bin', HOME = this.#folder, LANG = 'C.UTF-8' } = process.env;
    return { PATH, HOME, LANG, USER: userInfo().username, [STACK_VARIABLE]: this.#folder };
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself meanwhile.
  }
}
