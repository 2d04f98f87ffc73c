/** What every stack has on this machine: a folder with its state and workspace, and the command. */
import { AssertionError } from 'node:assert';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ChannelCredentials } from '@grpc/grpc-js';
import type { CallerRole } from '#chassis/caller.js';
import { clientCredentials } from '#chassis/grpc-client.js';
import type { LoadedIdentity } from '#chassis/identity-files.js';
import { type Census, processesOf, STACK_VARIABLE } from './census.js';
import {
  type CliCommand,
  type CliExit,
  type CliOptions,
  type CliProcess,
  runCli,
  startCli,
} from './cli-process.js';
import { eventually } from './eventually.js';
import { MovableClocks } from './movable-clocks.js';
import { type Plane, planes, type StackOptions } from './stack.js';
import { ensureIdentity, mintStateFolder } from './state-folder.js';

export const checkout = outOfDist(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));

/** The product's own compiled output, from the sources as from dist. */
export const ownDist = join(checkout, 'dist');

export const NODE_NAME = 'local';
/** What data logs when authority has answered its inventory. */
const JOINED = 'authority answers';
/** A leaving program has 2 s, its killing 8 s at most. */
const LEFT_MS_DEFAULT = 10_000;

export class StackHome {
  readonly folder: string;
  readonly stateDir: string;
  readonly workspace: string;
  readonly distDir: string;
  /** Undefined where clocks cannot be moved. */
  readonly clocks: MovableClocks | undefined;
  readonly #leftMs: number;
  readonly #logs = { authority: '', data: '' };
  #joinedFrom = 0;
  #hasOwnStore = false;

  private constructor(folder: string, { distDir, leftMs, hasMovableClocks }: StackOptions) {
    this.folder = folder;
    this.stateDir = join(folder, 'state');
    this.workspace = join(folder, 'workspace');
    this.distDir = distDir ?? ownDist;
    this.clocks =
      hasMovableClocks === true ? new MovableClocks(join(folder, 'clocks'), planes) : undefined;
    this.#leftMs = leftMs ?? LEFT_MS_DEFAULT;
  }

  static async make(options: StackOptions): Promise<StackHome> {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'wh-')));
    const home = new StackHome(folder, options);
    mkdirSync(home.workspace);
    await mintStateFolder(home.stateDir, NODE_NAME);
    if (options.storeBytes !== undefined) {
      home.#mountStore(options.storeBytes);
    }
    return home;
  }

  identityFor(role: CallerRole, name: string): Promise<LoadedIdentity> {
    return ensureIdentity(this.stateDir, role, name);
  }

  async credentialsFor(role: CallerRole, name: string, plane: Plane): Promise<ChannelCredentials> {
    const { identity, rootPem } = await this.identityFor(role, name);
    return clientCredentials(identity, rootPem, { plane });
  }

  moveClock(plane: Plane, byMs: number): void {
    if (this.clocks === undefined) {
      throw new Error('a stack whose clocks are to be moved is started hasMovableClocks');
    }
    this.clocks.move(plane, byMs);
  }

  hears(plane: Plane, text: string): void {
    this.#logs[plane] += text;
  }

  log(plane: Plane): string {
    return this.#logs[plane];
  }

  /** A plane is about to start: what `joined` waits for is still to come. */
  starts(): void {
    this.#joinedFrom = this.#logs.data.length;
  }

  async joined(): Promise<void> {
    await eventually('data has found authority', () =>
      this.#logs.data.includes(JOINED, this.#joinedFrom),
    );
  }

  wheelhouse(args: readonly string[], options: CliOptions = {}): Promise<CliExit> {
    return runCli(this.#command(args, options), options);
  }

  start(args: readonly string[], options: CliOptions = {}): CliProcess {
    return startCli(this.#command(args, options), options);
  }

  /** What a login would have, and the mark by which what is left of it is found. */
  environment(): Record<string, string> {
    const { PATH = '/usr/bin:/bin', HOME = this.folder, LANG = 'C.UTF-8' } = process.env;
    return { PATH, HOME, LANG, USER: userInfo().username, [STACK_VARIABLE]: this.folder };
  }

  /** Removes the folder. Fails when a process of the stack is left, and ends it. */
  async leave(): Promise<void> {
    const left = await this.#left();
    for (const { pid } of left) {
      kill(pid);
    }
    if (this.#hasOwnStore) {
      execFileSync('umount', [this.storeDir]);
    }
    rmSync(this.folder, { recursive: true, force: true });
    if (left.length > 0) {
      const list = left.map(({ pid, command }) => `${pid} ${command}`).join('\n');
      throw new AssertionError({ message: `left behind by the stack:\n${list}` });
    }
  }

  /** Authority's store, which may lie on a disk of its own. */
  get storeDir(): string {
    return join(this.stateDir, 'authority');
  }

  #mountStore(bytes: number): void {
    mkdirSync(this.storeDir, { mode: 0o700 });
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes},mode=0700`, 'none', this.storeDir]);
    this.#hasOwnStore = true;
  }

  async #left(): Promise<readonly Census[]> {
    const isClear = (): boolean => processesOf(this.folder).length === 0;
    return await eventually('no process left', isClear, this.#leftMs).then(
      () => [],
      () => processesOf(this.folder),
    );
  }

  #command(args: readonly string[], { env, cwd }: CliOptions): CliCommand {
    return {
      args: [join(this.distDir, 'clients', 'cli', 'main.js'), ...args],
      cwd: cwd ?? this.workspace,
      env: { ...this.environment(), WHEELHOUSE_STATE: this.stateDir, NO_COLOR: '1', ...env },
    };
  }
}

function outOfDist(folder: string): string {
  return folder.endsWith('/dist') ? dirname(folder) : folder;
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself meanwhile.
  }
}
