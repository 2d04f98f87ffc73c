/** The stack that scenarios are written against: what it can do, whatever it is made of. */
import type { ChannelCredentials } from '@grpc/grpc-js';
import type { CallerRole } from '#chassis/caller.js';
import type { LoadedIdentity } from '#chassis/identity-files.js';
import type { CliExit, CliOptions, CliProcess } from './cli-process.js';

export type Plane = 'authority' | 'data';

export const planes = ['authority', 'data'] as const satisfies readonly Plane[];

/** A whole system, up and reachable. Disposing it ends everything it started, and proves it. */
export interface Stack extends AsyncDisposable {
  /** `host:port`. A restarted plane keeps its own. */
  readonly endpoints: Readonly<Record<Plane, string>>;
  /** The state folder, as `--state` takes it. */
  readonly stateDir: string;
  /** A folder for programs to run in; whoever still runs in it at the end has leaked. */
  readonly workspace: string;

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
  /** Stops a plane where it stands, its sockets open. */
  pause(plane: Plane): void;
  resume(plane: Plane): void;
  /** The process that serves the plane now. Throws when it has ended. */
  pid(plane: Plane): number;
  /** Everything the plane has logged, all its lives together. */
  log(plane: Plane): string;

  /** Runs the command against this stack and waits for its end. */
  wheelhouse(args: readonly string[], options?: CliOptions): Promise<CliExit>;
  /** Starts the command against this stack. */
  start(args: readonly string[], options?: CliOptions): CliProcess;
}
