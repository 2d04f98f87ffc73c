/** The stack that scenarios are written against: what it can do, whatever it is made of. */
import type { ChannelCredentials } from '@grpc/grpc-js';
import type { CallerRole } from '#chassis/caller.js';
import type { LoadedIdentity } from '#chassis/identity-files.js';
import type { CliExit, CliOptions, CliProcess } from './cli-process.js';

export type Plane = 'authority' | 'data';

export const planes = ['authority', 'data'] as const satisfies readonly Plane[];

/** Who can be cut off from whom: a plane, or everybody who calls the planes from outside. */
export type Party = Plane | 'client';

/**
 * What a stack is made of.
 *
 * `in-process`: the services are assembled in the test's own process. `processes`: as `wheelhouse up`
 * starts them. `containers`: as the compose file deploys them.
 */
export type Depth = 'in-process' | 'processes' | 'containers';

export const depths = ['in-process', 'processes', 'containers'] as const satisfies readonly Depth[];

/** A whole system, up and reachable. Disposing it ends everything it started, and proves it. */
export interface Stack extends AsyncDisposable {
  readonly depth: Depth;
  /** `host:port`. A restarted plane keeps its own. */
  readonly endpoints: Readonly<Record<Plane, string>>;
  /** The state folder, as `--state` takes it. Services keep theirs in it as well. */
  readonly stateDir: string;
  /** A folder for programs to run in, also in their own eyes; whoever still runs in it at the end has leaked. */
  readonly workspace: string;

  /** The compiled output as programs in its terminals find it. */
  readonly programDir: string;

  /** An identity of this deployment: minted at first, the same one afterwards. */
  identityFor(role: CallerRole, name: string): Promise<LoadedIdentity>;
  /** The same, ready to dial a plane with. */
  credentialsFor(role: CallerRole, name: string, plane: Plane): Promise<ChannelCredentials>;

  /** Ends a plane without warning, as SIGKILL does, and waits until it is gone. */
  crash(plane: Plane): Promise<void>;
  /** Asks a plane to drain and waits until it has ended. */
  drain(plane: Plane): Promise<void>;
  /** Starts a plane that has ended, on the port it had. Returns when it is ready. */
  restart(plane: Plane): Promise<void>;
  /** Waits until data and authority, whichever was started last, have found each other. */
  joined(): Promise<void>;
  /**
   * Stops a plane where it stands, its sockets open; returns when it stands.
   *
   * In-process the plane itself cannot be stopped: everything it would hear and say is held back.
   */
  pause(plane: Plane): Promise<void>;
  resume(plane: Plane): Promise<void>;
  /**
   * Holds back everything between two parties, both ways, as a network does that has been cut: nobody
   * is told. Of processes only where the stack was started `isCuttable`.
   */
  cut(one: Party, other: Party): Promise<void>;
  heal(one: Party, other: Party): Promise<void>;
  /**
   * Moves a plane's idea of the time of day by this much from the true one; intervals stay as they are.
   * Not in-process, and only where the stack was started `hasMovableClocks`.
   */
  moveClock(plane: Plane, byMs: number): void;
  /** Whether a plane runs, paused or not. */
  lives(plane: Plane): boolean;
  /** The process that serves the plane now. Throws when it has ended, and in-process, where there is none of its own. */
  pid(plane: Plane): number;
  /** Everything the plane has logged, all its lives together. */
  log(plane: Plane): string;

  /** Runs the command against this stack and waits for its end. */
  wheelhouse(args: readonly string[], options?: CliOptions): Promise<CliExit>;
  /** Starts the command against this stack. */
  start(args: readonly string[], options?: CliOptions): CliProcess;
}

/** What a stack may be asked for. */
export interface StackOptions {
  /** Compiled output to run: the product's own, or a mutant's. */
  readonly distDir?: string;
  /** How long what was started may take to be gone at the end, in ms. */
  readonly leftMs?: number;
  /** Settings of a plane, by environment variable. */
  readonly settings?: Partial<Readonly<Record<Plane, Readonly<Record<string, string>>>>>;
  /** Whether clocks may be moved; needs libfaketime. */
  readonly hasMovableClocks?: boolean;
  /** Gives authority's store a disk of its own, of this size; needs root. */
  readonly storeBytes?: number;
  /** Processes only: whether parties may be cut off. It costs a relay on every way. */
  readonly isCuttable?: boolean;
}
