/** What every stack has on this machine: a folder with its state and workspace, and the command. */
import { AssertionError } from 'node:assert';
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
import type { Plane, StackOptions } from './stack.js';
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
  readonly #leftMs: number;
  readonly #logs = { authority: '', data: '' };
  #joinedFrom = 0;

  private constructor(folder: string, { distDir, leftMs }: StackOptions) {
    this.folder = folder;
    this.stateDir = join(folder, 'state');
    this.workspace = join(folder, 'workspace');
    this.distDir = distDir ?? ownDist;
    this.#leftMs = leftMs ?? LEFT_MS_DEFAULT;
  }

  static async make(options: StackOptions): Promise<StackHome> {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'wh-')));
    const home = new StackHome(folder, options);
    mkdirSync(home.workspace);
    await mintStateFolder(home.stateDir, NODE_NAME);
    return home;
  }

  identityFor(role: CallerRole, name: string): Promise<LoadedIdentity> {
    return ensureIdentity(this.stateDir, role, name);
  }

  async credentialsFor(role: CallerRole, name: string, plane: Plane): Promise<ChannelCredentials> {
    const { identity, rootPem } = await this.identityFor(role, name);
    return clientCredentials(identity, rootPem, { plane });
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
    rmSync(this.folder, { recursive: true, force: true });
    if (left.length > 0) {
      const list = left.map(({ pid, command }) => `${pid} ${command}`).join('\n');
      throw new AssertionError({ message: `left behind by the stack:\n${list}` });
    }
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
