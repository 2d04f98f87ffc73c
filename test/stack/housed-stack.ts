/** The part of a stack that is the same whatever it is made of: its folder, its identities, the command. */
import type { ChannelCredentials } from '@grpc/grpc-js';
import type { CallerRole } from '#chassis/caller.js';
import type { LoadedIdentity } from '#chassis/identity-files.js';
import type { CliExit, CliOptions, CliProcess } from './cli-process.js';
import type { Plane } from './stack.js';
import type { StackHome } from './stack-home.js';

export abstract class HousedStack {
  protected readonly home: StackHome;

  constructor(home: StackHome) {
    this.home = home;
  }

  get stateDir(): string {
    return this.home.stateDir;
  }

  get workspace(): string {
    return this.home.workspace;
  }

  get programDir(): string {
    return this.home.distDir;
  }

  identityFor(role: CallerRole, name: string): Promise<LoadedIdentity> {
    return this.home.identityFor(role, name);
  }

  credentialsFor(role: CallerRole, name: string, plane: Plane): Promise<ChannelCredentials> {
    return this.home.credentialsFor(role, name, plane);
  }

  joined(): Promise<void> {
    return this.home.joined();
  }

  moveClock(plane: Plane, byMs: number): void {
    this.home.moveClock(plane, byMs);
  }

  log(plane: Plane): string {
    return this.home.log(plane);
  }

  wheelhouse(args: readonly string[], options?: CliOptions): Promise<CliExit> {
    return this.home.wheelhouse(args, options);
  }

  start(args: readonly string[], options?: CliOptions): CliProcess {
    return this.home.start(args, options);
  }
}
